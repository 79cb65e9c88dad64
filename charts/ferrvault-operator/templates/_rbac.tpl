{{/*
Every verb the operator needs on what it watches, once, for the ClusterRole and for the Role of a watched namespace
alike. A verb is here because a call in the operator's `cluster` module makes it; nothing is here for convenience.
*/}}
{{- define "ferrvault-operator.resourceRules" -}}
# patch: the Go operator's finalizer is taken off. Specs are never written.
- apiGroups: [ferrvault.com]
  resources: [ferrvaultsecrets]
  verbs: [get, list, watch, patch]
- apiGroups: [ferrvault.com]
  resources: [ferrvaultsecrets/status]
  verbs: [patch]
# No finalizer is set through it: clusters with OwnerReferencesPermissionEnforcement ask for this verb before a target
# Secret may name its resource as the owner that it blocks.
- apiGroups: [ferrvault.com]
  resources: [ferrvaultsecrets/finalizers]
  verbs: [update]
# patch: the finalizer that keeps a connection while resources use it.
- apiGroups: [ferrvault.com]
  resources: [ferrvaultconnections]
  verbs: [get, list, watch, patch]
- apiGroups: [ferrvault.com]
  resources: [ferrvaultconnections/status]
  verbs: [patch]
# list and watch are made for metadata only, which RBAC cannot express. Never delete: owner references do that.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch]
# Workloads are read one at a time when their turn comes; they are neither listed nor watched.
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [get, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* What the operator needs in its own namespace, wherever it watches. */}}
{{- define "ferrvault-operator.ownRules" -}}
# The key of the content versions: made once, never replaced. RBAC cannot limit create to a name.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ .Values.keySecretName | quote }}]
  verbs: [get]
{{- if .Values.leaderElection.enabled }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Values.leaderElection.id | quote }}]
  verbs: [get, update]
{{- end }}
{{- end }}

{{- define "ferrvault-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "ferrvault-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
