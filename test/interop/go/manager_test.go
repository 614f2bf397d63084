// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var everything = labels.Everything()

func newClass(name string) *unstructured.Unstructured {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "compute.ironcore.dev", Version: "v1alpha1", Kind: "MachineClass"})
	class.SetName(name)
	return class
}

// startManager runs a manager that notes its name on every MachineClass, if it leads. The function stops it.
func startManager(t *testing.T, s *server, name string) func() {
	t.Helper()
	lease, renew, retry := 4*time.Second, 3*time.Second, 500*time.Millisecond
	skip := true
	manager, err := ctrl.NewManager(s.config(), ctrl.Options{
		LeaderElection:                true,
		LeaderElectionID:              "interop",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Controller:                    config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		class := newClass(request.Name)
		if err := manager.GetClient().Get(ctx, request.NamespacedName, class); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if class.GetLabels()["noted-by"] != "" {
			return reconcile.Result{}, nil
		}
		before := class.DeepCopy()
		class.SetLabels(map[string]string{"noted-by": name})
		return reconcile.Result{}, manager.GetClient().Patch(ctx, class, client.MergeFrom(before))
	})
	if err := ctrl.NewControllerManagedBy(manager).For(newClass("")).Named("notes").Complete(reconciler); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

func TestAManagerLeadsAndAnotherTakesOver(t *testing.T) {
	log.SetLogger(zap.New(zap.UseDevMode(false)))
	ctx := context.Background()
	s := newServer(t)
	direct, err := client.New(s.config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	notedBy := func(class, who string) {
		t.Helper()
		made := newClass(class)
		made.Object["capabilities"] = map[string]any{"cpu": "1", "memory": "1Gi"}
		if err := direct.Create(ctx, made); err != nil {
			t.Fatal(err)
		}
		eventually(t, class+" is noted", func() error {
			found := newClass(class)
			if err := direct.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
				return err
			}
			if got := found.GetLabels()["noted-by"]; got != who {
				return fmt.Errorf("noted by %q, not %q", got, who)
			}
			return nil
		})
	}
	stopFirst := startManager(t, s, "first")
	notedBy("a", "first")
	stopSecond := startManager(t, s, "second")
	defer stopSecond()
	notedBy("b", "first")
	stopFirst()
	notedBy("c", "second")
	// And over a server that dies under it.
	s.kill()
	s.start()
	notedBy("d", "second")
}

func TestApplyOwnsFieldsAndConflicts(t *testing.T) {
	ctx := context.Background()
	s := newServer(t)
	direct, err := client.New(s.config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(manager string, data map[string]string, options ...client.PatchOption) error {
		made := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"},
			Data:       data}
		return direct.Patch(ctx, made, client.Apply, append(options, client.FieldOwner(manager))...)
	}
	if err := apply("one", map[string]string{"a": "1", "b": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := apply("two", map[string]string{"a": "2"}); !apierrors.IsConflict(err) {
		t.Fatalf("no conflict: %v", err)
	}
	if err := apply("two", map[string]string{"a": "2"}, client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	// What its owner applies no more is gone; what another has taken over stays.
	if err := apply("one", map[string]string{}); err != nil {
		t.Fatal(err)
	}
	found := &corev1.ConfigMap{}
	if err := direct.Get(ctx, client.ObjectKey{Namespace: "default", Name: "c"}, found); err != nil {
		t.Fatal(err)
	}
	if len(found.Data) != 1 || found.Data["a"] != "2" {
		t.Fatalf("data is %v", found.Data)
	}
}
