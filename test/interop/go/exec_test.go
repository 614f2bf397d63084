// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"
)

var machines = schema.GroupVersionResource{Group: "compute.ironcore.dev", Version: "v1alpha1", Resource: "machines"}

// run starts a part of a host beside the server; it ends with the test.
func (s *server) run(name string, words ...string) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.folder, name+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	process := exec.Command(os.Getenv("BERTH_BINARY"), words...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		log.Close()
		if s.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.t.Logf("%s:\n%s", name, text)
		}
	})
}

// startHost joins a host whose guests are made up, with a pool of machines.
func (s *server) startHost() {
	s.t.Helper()
	token := exec.Command(os.Getenv("BERTH_BINARY"), "pool", "join-token", "alpha")
	token.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.folder, "data", "kubeconfig"))
	text, err := token.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.folder, "token")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	socket := filepath.Join(s.folder, "runtime.sock")
	s.run("runtime", "runtime", "fake", "--socket", socket, "--name", "alpha", "--boot-time", "10ms")
	eventually(s.t, "the runtime listens", func() error { _, err := os.Stat(socket); return err })
	s.run("poollet", "poollet", "--server", s.gateway, "--token-file", file, "--data-dir", filepath.Join(s.folder, "poollet"),
		"--name", "alpha", "--machine-pool", "alpha", "--machine-runtime", "unix:"+socket)
}

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	content := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for field, value := range more {
		content[field] = value
	}
	return &unstructured.Unstructured{Object: content}
}

// What kubectl does behind its exec: remotecommand over WebSocket, with the newest protocol that both know.
func TestCommandsRunThroughRemotecommand(t *testing.T) {
	s := newServer(t)
	s.startHost()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := dynamic.NewForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(classes).Create(ctx, object("compute.ironcore.dev/v1alpha1", "MachineClass", "small",
		map[string]any{"capabilities": map[string]any{"cpu": "1", "memory": "1Gi"}}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	guests := client.Resource(machines).Namespace("default")
	if _, err := guests.Create(ctx, object("compute.ironcore.dev/v1alpha1", "Machine", "guest", map[string]any{
		"spec": map[string]any{"machineClassRef": map[string]any{"name": "small"}}}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine runs", func() error {
		machine, err := guests.Get(ctx, "guest", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(machine.Object, "status", "state"); state != "Running" {
			return fmt.Errorf("it is %q", state)
		}
		return nil
	})

	run := func(input string, command ...string) (string, error) {
		query := "?stdout=true&stderr=true"
		if input != "" {
			query += "&stdin=true"
		}
		for _, word := range command {
			query += "&command=" + word
		}
		url := s.config().Host + "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines/guest/exec" + query
		executor, err := remotecommand.NewWebSocketExecutor(s.config(), http.MethodGet, url)
		if err != nil {
			t.Fatal(err)
		}
		var output, errors bytes.Buffer
		options := remotecommand.StreamOptions{Stdout: &output, Stderr: &errors}
		if input != "" {
			options.Stdin = strings.NewReader(input)
		}
		err = executor.StreamWithContext(ctx, options)
		return output.String() + errors.String(), err
	}
	if output, err := run("", "uname", "-a"); err != nil || output != "ran uname -a\n" {
		t.Fatalf("uname: %q, %v", output, err)
	}
	if output, err := run("hello", "cat"); err != nil || output != "ran cat\nhello" {
		t.Fatalf("cat: %q, %v", output, err)
	}
	_, err = run("", "false")
	var failed clientexec.CodeExitError
	if !errors.As(err, &failed) || failed.Code != 1 {
		t.Fatalf("false: %v", err)
	}
}
