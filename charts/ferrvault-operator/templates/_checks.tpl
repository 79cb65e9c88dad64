{{/*
What the operator would refuse at its start, or what could not work, refused before anything is installed: each message
names value and limit. The limits are the operator's own (its `settings`); a test compares the two. What extraArgs say
again is left to the operator, because there the last one counts.
*/}}
{{- define "ferrvault-operator.checks" -}}
{{- $extra := join " " .Values.extraArgs }}

{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection.enabled) }}
{{- fail "replicaCount above 1 needs leaderElection.enabled=true: without it every replica would do the same work" }}
{{- end }}

{{- if and .Values.oidcToken.enabled (not .Values.oidcToken.allowOrigins) }}
{{- fail "oidcToken.enabled needs oidcToken.allowOrigins: the servers that the operator's identity may be sent to" }}
{{- end }}

{{- if and .Values.metrics.enabled (eq (int .Values.metrics.port) (int .Values.probe.port)) }}
{{- fail (printf "metrics.port and probe.port are both %d: give each a port of its own" (int .Values.probe.port)) }}
{{- end }}

{{- range $name := list "defaultRefreshInterval" "stallThreshold" "reconcileTimeout" }}
{{- $value := get $.Values $name }}
{{- if and (not (kindIs "string" $value)) $value }}
{{- fail (printf "%s=%v is no duration: a number needs its unit, as in 90s, 30m or 1h30m" $name $value) }}
{{- end }}
{{- end }}

{{- if not (contains "log-level" $extra) }}
{{- $level := toString .Values.logLevel }}
{{- $named := has (lower $level) (list "error" "dpanic" "panic" "fatal" "warn" "warning" "info" "debug" "trace") }}
{{- $numbered := and (regexMatch "^[+]?[0-9]+$" $level) (ge (atoi $level) 1) (le (atoi $level) 255) }}
{{- if not (or $named $numbered) }}
{{- fail (printf "logLevel=%s is no level: use error, warn, info, debug or trace, or a number from 1 on" $level) }}
{{- end }}
{{- end }}

{{- if not (regexMatch "(reconcile-timeout|stall-threshold)" $extra) }}
{{- $pass := toString .Values.reconcileTimeout }}
{{- $stall := toString .Values.stallThreshold }}
{{- if lt (include "ferrvault-operator.nanoseconds" $pass | atoi) 30625000000 }}
{{- fail (printf "reconcileTimeout=%s is too short: it has to be at least 30.625s, the longest that one call to FerrVault takes with its retries" $pass) }}
{{- end }}
{{- if le (include "ferrvault-operator.nanoseconds" $stall | atoi) 600000000000 }}
{{- fail (printf "stallThreshold=%s is too short: it has to be more than 10m, the interval at which connections are probed" $stall) }}
{{- end }}
{{- if le (include "ferrvault-operator.nanoseconds" $stall | atoi) (include "ferrvault-operator.nanoseconds" $pass | atoi) }}
{{- fail (printf "stallThreshold=%s is too short: it has to be more than reconcileTimeout=%s" $stall $pass) }}
{{- end }}
{{- end }}

{{- if and .Values.leaderElection.enabled (not (contains "leader-elect" $extra)) }}
{{- $lease := .Values.leaderElection.leaseDuration | default "15s" }}
{{- $deadline := .Values.leaderElection.renewDeadline | default "10s" }}
{{- $period := .Values.leaderElection.retryPeriod | default "5s" }}
{{- if lt (include "ferrvault-operator.nanoseconds" $period | atoi) 100000000 }}
{{- fail (printf "leaderElection.retryPeriod=%s is too short: it has to be at least 100ms, or a leader would do little but renew" $period) }}
{{- end }}
{{- if lt (include "ferrvault-operator.nanoseconds" $deadline | atoi) (include "ferrvault-operator.withGap" $period | atoi) }}
{{- fail (printf "leaderElection.renewDeadline=%s is too short: it has to be at least leaderElection.retryPeriod=%s and a tenth of it, at least 1s, on top" $deadline $period) }}
{{- end }}
{{- if lt (include "ferrvault-operator.nanoseconds" $lease | atoi) (include "ferrvault-operator.withGap" $deadline | atoi) }}
{{- fail (printf "leaderElection.leaseDuration=%s is too short: it has to be at least leaderElection.renewDeadline=%s and a tenth of it, at least 1s, on top" $lease $deadline) }}
{{- end }}
{{- $nanoseconds := include "ferrvault-operator.nanoseconds" $lease | atoi }}
{{- if or (mod $nanoseconds 1000000000) (gt $nanoseconds 3600000000000) }}
{{- fail (printf "leaderElection.leaseDuration=%s cannot be used: it has to be whole seconds, and one hour at most" $lease) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The shortest that the time above this one may be: a tenth longer, and a second at least. */}}
{{- define "ferrvault-operator.withGap" -}}
{{- $shorter := include "ferrvault-operator.nanoseconds" . | atoi }}
{{- add $shorter (max (div $shorter 10) 1000000000) }}
{{- end }}
