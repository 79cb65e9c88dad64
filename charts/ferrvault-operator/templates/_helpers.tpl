{{/* The chart's name, as the label app.kubernetes.io/name carries it. */}}
{{- define "ferrvault-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
The name of everything that the release creates: the release's own where it says what this is, both otherwise.
53 characters leave room for the suffixes below within the 63 of a Service's name.
*/}}
{{- define "ferrvault-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Cluster-scoped objects carry the namespace too: two releases of one name must not share them. */}}
{{- define "ferrvault-operator.clusterName" -}}
{{- printf "%s.%s" (include "ferrvault-operator.fullname" .) .Release.Namespace }}
{{- end }}

{{- define "ferrvault-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "ferrvault-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Never changed: a Deployment's selector cannot be. */}}
{{- define "ferrvault-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ferrvault-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ferrvault-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "ferrvault-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* A Go duration in seconds. */}}
{{- define "ferrvault-operator.seconds" -}}
{{- $units := dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 "us" 0.000001 "ns" 0.000000001 }}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 }}
{{- $seconds = addf $seconds (mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-z]+$" .))) }}
{{- end }}
{{- $seconds }}
{{- end }}
