// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

var classes = schema.GroupVersionResource{Group: "compute.ironcore.dev", Version: "v1alpha1", Resource: "machineclasses"}

// Everything is sent and asked for in protobuf, as generated clients prefer.
func protobufClients(t *testing.T, s *server) *kubernetes.Clientset {
	config := s.config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func certificateRequest(t *testing.T, user string) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"devs"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestBuiltInKindsAreWrittenInProtobuf(t *testing.T) {
	ctx := context.Background()
	clients := protobufClients(t, newServer(t))
	secret, err := clients.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "b"}},
		Data:       map[string][]byte{"key": {0, 1, 255}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["key"]) != "\x00\x01\xff" || secret.Labels["a"] != "b" || secret.UID == "" {
		t.Fatalf("the secret is %+v", secret)
	}
	another := types.UID("00000000-0000-4000-8000-00000000dead")
	err = clients.CoreV1().Secrets("default").Delete(ctx, "s",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &another}})
	if !apierrors.IsConflict(err) {
		t.Fatalf("deleting another secret of that name: %v", err)
	}
	err = clients.CoreV1().Secrets("default").Delete(ctx, "s",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after its deletion: %v", err)
	}
	holder, seconds, now := "me", int32(15), metav1.NowMicro()
	lease, err := clients.CoordinationV1().Leases("default").Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !lease.Spec.RenewTime.Time.Equal(now.Time.Truncate(time.Microsecond)) {
		t.Fatalf("renewed at %v, not %v", lease.Spec.RenewTime, now)
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "berth-admin" {
		t.Fatalf("%+v, %v", review, err)
	}
}

func TestACertificateIsRequestedApprovedAndUsed(t *testing.T) {
	ctx := context.Background()
	clients := protobufClients(t, newServer(t))
	requests := clients.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    certificateRequest(t, "jane"),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Conditions = append(made.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"})
	if _, err := requests.UpdateApproval(ctx, "jane", made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the certificate is signed", func() error {
		found, err := requests.Get(ctx, "jane", metav1.GetOptions{})
		if err != nil {
			return err
		}
		block, _ := pem.Decode(found.Status.Certificate)
		if block == nil {
			return fmt.Errorf("no certificate yet")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.Subject.CommonName != "jane" {
			err = fmt.Errorf("it is %v's", certificate.Subject)
		}
		return err
	})
}

// Gates that let informers begin with a watch that sends the state first, as client-go does by itself from 0.35 on.
type watchLists struct{ clientfeatures.Gates }

func (g watchLists) Enabled(feature clientfeatures.Feature) bool {
	return feature == clientfeatures.WatchListClient || g.Gates.Enabled(feature)
}

// Counts the watches that asked for the state first.
type countedRequests struct {
	http.RoundTripper
	initial *atomic.Int32
}

func (c countedRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		c.initial.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}

func TestInformersFollowOverAKilledServer(t *testing.T) {
	if asked := followOverAKilledServer(t); asked != 0 {
		t.Errorf("%d watches asked for the state, although no gate is open", asked)
	}
}

func TestInformersThatBeginWithAWatchFollowOverAKilledServer(t *testing.T) {
	gates := clientfeatures.FeatureGates()
	clientfeatures.ReplaceFeatureGates(watchLists{gates})
	defer clientfeatures.ReplaceFeatureGates(gates)
	if asked := followOverAKilledServer(t); asked < 2 {
		t.Errorf("%d watches asked for the state, and there are two informers", asked)
	}
}

// How many watches asked for the state first.
func followOverAKilledServer(t *testing.T) int32 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newServer(t)
	var initial atomic.Int32
	config := s.config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countedRequests{next, &initial} })
	clients := kubernetes.NewForConfigOrDie(config)
	typed := informers.NewSharedInformerFactory(clients, 0)
	maps := typed.Core().V1().ConfigMaps()
	seen := map[string]int{}
	_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen[object.(*corev1.ConfigMap).Name]++ }})
	if err != nil {
		t.Fatal(err)
	}
	plain := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	lister := plain.ForResource(classes).Lister()
	typed.Start(ctx.Done())
	plain.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	plain.WaitForCacheSync(ctx.Done())
	create := func(name string) {
		t.Helper()
		_, err := clients.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the informer has "+name, func() error {
			_, err := maps.Lister().ConfigMaps("default").Get(name)
			return err
		})
	}
	create("before")
	for round := range 3 {
		s.kill()
		s.start()
		create("after-" + string(rune('a'+round)))
	}
	if _, err := lister.List(everything); err != nil {
		t.Fatal(err)
	}
	cancel()
	typed.Shutdown()
	for name, times := range seen {
		if times != 1 {
			t.Errorf("%s was added %d times", name, times)
		}
	}
	if len(seen) < 4 {
		t.Errorf("only %v were seen", seen)
	}
	return initial.Load()
}
