// SPDX-License-Identifier: Apache-2.0
#include "meta/k8s_proto/messages.h"

#include <algorithm>

namespace berth::meta {
namespace {

constexpr ProtoField kAuthenticationSelfSubjectReview[] = {{1, "metadata"}, {2, "status"}};
constexpr ProtoField kAuthenticationSelfSubjectReviewStatus[] = {{1, "userInfo"}};
constexpr ProtoField kAuthenticationTokenReview[] = {{1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAuthenticationTokenReviewSpec[] = {{1, "token"}, {2, "audiences"}};
constexpr ProtoField kAuthenticationTokenReviewStatus[] = {
    {1, "authenticated"}, {2, "user"}, {3, "error"}, {4, "audiences"}};
constexpr ProtoField kAuthenticationUserInfo[] = {
    {1, "username"}, {2, "uid"}, {3, "groups"}, {4, "extra"}};
constexpr ProtoField kAuthorizationLocalSubjectAccessReview[] = {
    {1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAuthorizationNonResourceAttributes[] = {{1, "path"}, {2, "verb"}};
constexpr ProtoField kAuthorizationNonResourceRule[] = {{1, "verbs"}, {2, "nonResourceURLs"}};
constexpr ProtoField kAuthorizationResourceAttributes[] = {{1, "namespace"},
                                                           {2, "verb"},
                                                           {3, "group"},
                                                           {4, "version"},
                                                           {5, "resource"},
                                                           {6, "subresource"},
                                                           {7, "name"}};
constexpr ProtoField kAuthorizationResourceRule[] = {
    {1, "verbs"}, {2, "apiGroups"}, {3, "resources"}, {4, "resourceNames"}};
constexpr ProtoField kAuthorizationSelfSubjectAccessReview[] = {
    {1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAuthorizationSelfSubjectAccessReviewSpec[] = {{1, "resourceAttributes"},
                                                                    {2, "nonResourceAttributes"}};
constexpr ProtoField kAuthorizationSelfSubjectRulesReview[] = {
    {1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAuthorizationSelfSubjectRulesReviewSpec[] = {{1, "namespace"}};
constexpr ProtoField kAuthorizationSubjectAccessReview[] = {
    {1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAuthorizationSubjectAccessReviewSpec[] = {{1, "resourceAttributes"},
                                                                {2, "nonResourceAttributes"},
                                                                {3, "user"},
                                                                {4, "groups"},
                                                                {5, "extra"},
                                                                {6, "uid"}};
constexpr ProtoField kAuthorizationSubjectAccessReviewStatus[] = {
    {1, "allowed"}, {2, "reason"}, {3, "evaluationError"}, {4, "denied"}};
constexpr ProtoField kAuthorizationSubjectRulesReviewStatus[] = {
    {1, "resourceRules"}, {2, "nonResourceRules"}, {3, "incomplete"}, {4, "evaluationError"}};
constexpr ProtoField kAutoscalingScale[] = {{1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kAutoscalingScaleSpec[] = {{1, "replicas"}};
constexpr ProtoField kAutoscalingScaleStatus[] = {{1, "replicas"}, {2, "selector"}};
constexpr ProtoField kCertificatesCertificateSigningRequest[] = {
    {1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kCertificatesCertificateSigningRequestCondition[] = {{1, "type"},
                                                                          {2, "reason"},
                                                                          {3, "message"},
                                                                          {4, "lastUpdateTime"},
                                                                          {5, "lastTransitionTime"},
                                                                          {6, "status"}};
constexpr ProtoField kCertificatesCertificateSigningRequestSpec[] = {{1, "request"},
                                                                     {2, "username"},
                                                                     {3, "uid"},
                                                                     {4, "groups"},
                                                                     {5, "usages"},
                                                                     {6, "extra"},
                                                                     {7, "signerName"},
                                                                     {8, "expirationSeconds"}};
constexpr ProtoField kCertificatesCertificateSigningRequestStatus[] = {{1, "conditions"},
                                                                       {2, "certificate"}};
constexpr ProtoField kCoordinationLease[] = {{1, "metadata"}, {2, "spec"}};
constexpr ProtoField kCoordinationLeaseSpec[] = {{1, "holderIdentity"},
                                                 {2, "leaseDurationSeconds"},
                                                 {3, "acquireTime"},
                                                 {4, "renewTime"},
                                                 {5, "leaseTransitions"}};
constexpr ProtoField kCoreConfigMap[] = {
    {1, "metadata"}, {2, "data"}, {3, "binaryData"}, {4, "immutable"}};
constexpr ProtoField kCoreEvent[] = {{1, "metadata"},
                                     {2, "involvedObject"},
                                     {3, "reason"},
                                     {4, "message"},
                                     {5, "source"},
                                     {6, "firstTimestamp"},
                                     {7, "lastTimestamp"},
                                     {8, "count"},
                                     {9, "type"},
                                     {10, "eventTime"},
                                     {11, "series"},
                                     {12, "action"},
                                     {13, "related"},
                                     {14, "reportingComponent"},
                                     {15, "reportingInstance"}};
constexpr ProtoField kCoreEventSeries[] = {{1, "count"}, {2, "lastObservedTime"}};
constexpr ProtoField kCoreEventSource[] = {{1, "component"}, {2, "host"}};
constexpr ProtoField kCoreNamespace[] = {{1, "metadata"}, {2, "spec"}, {3, "status"}};
constexpr ProtoField kCoreNamespaceCondition[] = {
    {1, "type"}, {2, "status"}, {4, "lastTransitionTime"}, {5, "reason"}, {6, "message"}};
constexpr ProtoField kCoreNamespaceSpec[] = {{1, "finalizers"}};
constexpr ProtoField kCoreNamespaceStatus[] = {{1, "phase"}, {2, "conditions"}};
constexpr ProtoField kCoreObjectReference[] = {{1, "kind"},
                                               {2, "namespace"},
                                               {3, "name"},
                                               {4, "uid"},
                                               {5, "apiVersion"},
                                               {6, "resourceVersion"},
                                               {7, "fieldPath"}};
constexpr ProtoField kCoreSecret[] = {
    {1, "metadata"}, {2, "data"}, {3, "type"}, {4, "stringData"}, {5, "immutable"}};
constexpr ProtoField kEventsEvent[] = {{1, "metadata"},
                                       {2, "eventTime"},
                                       {3, "series"},
                                       {4, "reportingController"},
                                       {5, "reportingInstance"},
                                       {6, "action"},
                                       {7, "reason"},
                                       {8, "regarding"},
                                       {9, "related"},
                                       {10, "note"},
                                       {11, "type"},
                                       {12, "deprecatedSource"},
                                       {13, "deprecatedFirstTimestamp"},
                                       {14, "deprecatedLastTimestamp"},
                                       {15, "deprecatedCount"}};
constexpr ProtoField kEventsEventSeries[] = {{1, "count"}, {2, "lastObservedTime"}};
constexpr ProtoField kRbacAggregationRule[] = {{1, "clusterRoleSelectors"}};
constexpr ProtoField kRbacClusterRole[] = {{1, "metadata"}, {2, "rules"}, {3, "aggregationRule"}};
constexpr ProtoField kRbacClusterRoleBinding[] = {{1, "metadata"}, {2, "subjects"}, {3, "roleRef"}};
constexpr ProtoField kRbacPolicyRule[] = {
    {1, "verbs"}, {2, "apiGroups"}, {3, "resources"}, {4, "resourceNames"}, {5, "nonResourceURLs"}};
constexpr ProtoField kRbacRole[] = {{1, "metadata"}, {2, "rules"}};
constexpr ProtoField kRbacRoleBinding[] = {{1, "metadata"}, {2, "subjects"}, {3, "roleRef"}};
constexpr ProtoField kRbacRoleRef[] = {{1, "apiGroup"}, {2, "kind"}, {3, "name"}};
constexpr ProtoField kRbacSubject[] = {{1, "kind"}, {2, "apiGroup"}, {3, "name"}, {4, "namespace"}};
constexpr ProtoField kSchedulingPriorityClass[] = {{1, "metadata"},
                                                   {2, "value"},
                                                   {3, "globalDefault"},
                                                   {4, "description"},
                                                   {5, "preemptionPolicy"}};
constexpr ProtoField kMetaDeleteOptions[] = {{1, "gracePeriodSeconds"},
                                             {2, "preconditions"},
                                             {3, "orphanDependents"},
                                             {4, "propagationPolicy"},
                                             {5, "dryRun"}};
constexpr ProtoField kMetaLabelSelector[] = {{1, "matchLabels"}, {2, "matchExpressions"}};
constexpr ProtoField kMetaLabelSelectorRequirement[] = {{1, "key"}, {2, "operator"}, {3, "values"}};
constexpr ProtoField kMetaManagedFieldsEntry[] = {{1, "manager"},
                                                  {2, "operation"},
                                                  {3, "apiVersion"},
                                                  {4, "time"},
                                                  {6, "fieldsType"},
                                                  {7, "fieldsV1"},
                                                  {8, "subresource"}};
constexpr ProtoField kMetaObjectMeta[] = {{1, "name"},
                                          {2, "generateName"},
                                          {3, "namespace"},
                                          {4, "selfLink"},
                                          {5, "uid"},
                                          {6, "resourceVersion"},
                                          {7, "generation"},
                                          {8, "creationTimestamp"},
                                          {9, "deletionTimestamp"},
                                          {10, "deletionGracePeriodSeconds"},
                                          {11, "labels"},
                                          {12, "annotations"},
                                          {13, "ownerReferences"},
                                          {14, "finalizers"},
                                          {17, "managedFields"}};
constexpr ProtoField kMetaOwnerReference[] = {{1, "kind"},
                                              {3, "name"},
                                              {4, "uid"},
                                              {5, "apiVersion"},
                                              {6, "controller"},
                                              {7, "blockOwnerDeletion"}};
constexpr ProtoField kMetaPreconditions[] = {{1, "uid"}, {2, "resourceVersion"}};

constexpr ProtoMessage kMessages[] = {
    {"io.k8s.api.authentication.v1.SelfSubjectReview", kAuthenticationSelfSubjectReview},
    {"io.k8s.api.authentication.v1.SelfSubjectReviewStatus",
     kAuthenticationSelfSubjectReviewStatus},
    {"io.k8s.api.authentication.v1.TokenReview", kAuthenticationTokenReview},
    {"io.k8s.api.authentication.v1.TokenReviewSpec", kAuthenticationTokenReviewSpec},
    {"io.k8s.api.authentication.v1.TokenReviewStatus", kAuthenticationTokenReviewStatus},
    {"io.k8s.api.authentication.v1.UserInfo", kAuthenticationUserInfo},
    {"io.k8s.api.authorization.v1.LocalSubjectAccessReview",
     kAuthorizationLocalSubjectAccessReview},
    {"io.k8s.api.authorization.v1.NonResourceAttributes", kAuthorizationNonResourceAttributes},
    {"io.k8s.api.authorization.v1.NonResourceRule", kAuthorizationNonResourceRule},
    {"io.k8s.api.authorization.v1.ResourceAttributes", kAuthorizationResourceAttributes},
    {"io.k8s.api.authorization.v1.ResourceRule", kAuthorizationResourceRule},
    {"io.k8s.api.authorization.v1.SelfSubjectAccessReview", kAuthorizationSelfSubjectAccessReview},
    {"io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec",
     kAuthorizationSelfSubjectAccessReviewSpec},
    {"io.k8s.api.authorization.v1.SelfSubjectRulesReview", kAuthorizationSelfSubjectRulesReview},
    {"io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec",
     kAuthorizationSelfSubjectRulesReviewSpec},
    {"io.k8s.api.authorization.v1.SubjectAccessReview", kAuthorizationSubjectAccessReview},
    {"io.k8s.api.authorization.v1.SubjectAccessReviewSpec", kAuthorizationSubjectAccessReviewSpec},
    {"io.k8s.api.authorization.v1.SubjectAccessReviewStatus",
     kAuthorizationSubjectAccessReviewStatus},
    {"io.k8s.api.authorization.v1.SubjectRulesReviewStatus",
     kAuthorizationSubjectRulesReviewStatus},
    {"io.k8s.api.autoscaling.v1.Scale", kAutoscalingScale},
    {"io.k8s.api.autoscaling.v1.ScaleSpec", kAutoscalingScaleSpec},
    {"io.k8s.api.autoscaling.v1.ScaleStatus", kAutoscalingScaleStatus},
    {"io.k8s.api.certificates.v1.CertificateSigningRequest",
     kCertificatesCertificateSigningRequest},
    {"io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
     kCertificatesCertificateSigningRequestCondition},
    {"io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
     kCertificatesCertificateSigningRequestSpec},
    {"io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
     kCertificatesCertificateSigningRequestStatus},
    {"io.k8s.api.coordination.v1.Lease", kCoordinationLease},
    {"io.k8s.api.coordination.v1.LeaseSpec", kCoordinationLeaseSpec},
    {"io.k8s.api.core.v1.ConfigMap", kCoreConfigMap},
    {"io.k8s.api.core.v1.Event", kCoreEvent},
    {"io.k8s.api.core.v1.EventSeries", kCoreEventSeries},
    {"io.k8s.api.core.v1.EventSource", kCoreEventSource},
    {"io.k8s.api.core.v1.Namespace", kCoreNamespace},
    {"io.k8s.api.core.v1.NamespaceCondition", kCoreNamespaceCondition},
    {"io.k8s.api.core.v1.NamespaceSpec", kCoreNamespaceSpec},
    {"io.k8s.api.core.v1.NamespaceStatus", kCoreNamespaceStatus},
    {"io.k8s.api.core.v1.ObjectReference", kCoreObjectReference},
    {"io.k8s.api.core.v1.Secret", kCoreSecret},
    {"io.k8s.api.events.v1.Event", kEventsEvent},
    {"io.k8s.api.events.v1.EventSeries", kEventsEventSeries},
    {"io.k8s.api.rbac.v1.AggregationRule", kRbacAggregationRule},
    {"io.k8s.api.rbac.v1.ClusterRole", kRbacClusterRole},
    {"io.k8s.api.rbac.v1.ClusterRoleBinding", kRbacClusterRoleBinding},
    {"io.k8s.api.rbac.v1.PolicyRule", kRbacPolicyRule},
    {"io.k8s.api.rbac.v1.Role", kRbacRole},
    {"io.k8s.api.rbac.v1.RoleBinding", kRbacRoleBinding},
    {"io.k8s.api.rbac.v1.RoleRef", kRbacRoleRef},
    {"io.k8s.api.rbac.v1.Subject", kRbacSubject},
    {"io.k8s.api.scheduling.v1.PriorityClass", kSchedulingPriorityClass},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", kMetaDeleteOptions},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", kMetaLabelSelector},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
     kMetaLabelSelectorRequirement},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", kMetaManagedFieldsEntry},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", kMetaObjectMeta},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", kMetaOwnerReference},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions", kMetaPreconditions},
};
static_assert(std::ranges::is_sorted(kMessages, {}, &ProtoMessage::name));

}  // namespace

std::span<const ProtoMessage> ProtoMessages() { return kMessages; }

const ProtoMessage* FindProtoMessage(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kMessages, name, {}, &ProtoMessage::name);
  return found != std::end(kMessages) && found->name == name ? found : nullptr;
}

}  // namespace berth::meta
