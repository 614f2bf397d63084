// SPDX-License-Identifier: Apache-2.0

// Package interop shows that programs made with client-go and controller-runtime work with Berth as they are.
package interop

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A server of our own, which can be killed and started again at the same address.
type server struct {
	t       *testing.T
	folder  string
	address string
	gateway string // where hosts connect
	process *exec.Cmd
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func newServer(t *testing.T) *server {
	if os.Getenv("BERTH_BINARY") == "" {
		t.Fatal("BERTH_BINARY names the program under test; scripts/interop sets it")
	}
	s := &server{t: t, folder: t.TempDir(), address: freeAddress(t), gateway: freeAddress(t)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.process = exec.Command(os.Getenv("BERTH_BINARY"), "server", "--data-dir", filepath.Join(s.folder, "data"),
		"--listen", s.address, "--gateway-listen", s.gateway)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the server is ready", func() error {
		config, err := s.tryConfig()
		if err != nil {
			return err
		}
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(context.Background()).Error()
	})
}

// kill ends it as a power cut would.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
	if s.t.Failed() {
		text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
		s.t.Logf("the server's log:\n%s", text)
	}
}

func (s *server) tryConfig() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", filepath.Join(s.folder, "data", "kubeconfig"))
}

func (s *server) config() *rest.Config {
	s.t.Helper()
	config, err := s.tryConfig()
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

// eventually repeats the question until its answer is nil.
func eventually(t *testing.T, what string, question func() error) {
	t.Helper()
	var last error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = question(); last == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, last)
}
