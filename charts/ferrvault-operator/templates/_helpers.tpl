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

{{/*
A Go duration in whole nanoseconds. What the schema lets through is counted as the operator counts it; of a fraction that
is finer than that, the nearest is taken, so that nothing is refused here that the operator would take.
*/}}
{{- define "ferrvault-operator.nanoseconds" -}}
{{- $units := dict "h" 3600000000000 "m" 60000000000 "s" 1000000000 "ms" 1000000 "us" 1000 "µs" 1000 "μs" 1000 "ns" 1 }}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]*([.][0-9]*)?[a-zµμ]+" (toString .) -1 }}
{{- $unit := get $units (regexFind "[^0-9.]+$" .) }}
{{- $fraction := regexFind "[.][0-9]+" . | printf "0%s" | float64 }}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" . | atoi) $unit) (round (mulf $fraction $unit) 3 | floor | int64) }}
{{- end }}
{{- $sum }}
{{- end }}
