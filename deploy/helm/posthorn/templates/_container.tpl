{{/* The container of an app. */}}

{{/* Its environment: settings, paths of secrets, ports, Node's options. Takes {root, app}. */}}
{{- define "posthorn.env" -}}
{{- $values := index .root.Values .app -}}
{{- $pod := include "posthorn.pod" . | fromJson -}}
{{- /* Kubernetes refuses a container that has a name twice. */}}
{{- $given := dict -}}
{{- range $pod.extraEnv }}{{ $_ := set $given .name true }}{{ end -}}
{{- range $name, $text := include "posthorn.settings" . | fromJson }}
{{- if hasKey $given $name }}{{ fail (printf "%s is a setting: set it in settings, not in extraEnv." $name) }}{{ end }}
- { name: {{ $name }}, value: {{ $text | quote }} }
{{- end }}
{{- range $name := list "PORT" "OPERATIONS_PORT" }}
{{- if hasKey $given $name }}{{ fail (printf "%s is set by the chart: leave it out of extraEnv." $name) }}{{ end }}
{{- end }}
{{- range $name, $_ := include "posthorn.secrets" . | fromJson }}
{{- if hasKey $given (printf "%s_FILE" $name) }}{{ fail (printf "%s_FILE is set by the chart: leave it out of extraEnv." $name) }}{{ end }}
- { name: {{ $name }}_FILE, value: /etc/posthorn/secrets/{{ $name }} }
{{- end }}
{{- /* A worker serves only the routes for operations. */}}
- { name: PORT, value: {{ $values.port | default .root.Values.operationsPort | quote }} }
{{- if $values.port }}
- { name: OPERATIONS_PORT, value: {{ .root.Values.operationsPort | quote }} }
{{- end }}
{{- with dig "limits" "memory" "" ($values.resources | default dict) }}
{{- if eq $.app "worker" }}
{{- include "posthorn.checkLargeEvents" (dict "root" $.root "memory" (toString .)) }}
{{- end }}
{{- if not (hasKey $given "NODE_OPTIONS") }}
- { name: NODE_OPTIONS, value: "--max-old-space-size={{ div (mul (include "posthorn.mebibytes" (toString .) | int64) $.root.Values.heapPercent) 100 }}" }
{{- end }}
{{- end }}
{{- if and (or .root.Values.redisCa.secret .root.Values.redisCa.configMap) (not (hasKey $given "NODE_EXTRA_CA_CERTS")) }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/posthorn/redis-ca/ca.crt }
{{- end }}
{{- with $pod.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "posthorn.container" -}}
{{- $values := index .root.Values .app -}}
{{- $pod := include "posthorn.pod" . | fromJson -}}
name: {{ .app }}
image: {{ include "posthorn.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: ["node", "apps/{{ .app }}/dist/main.cjs"]
env:
  {{- include "posthorn.env" . | trim | nindent 2 }}
ports:
  {{- if $values.port }}
  - { name: http, containerPort: {{ $values.port }} }
  {{- end }}
  - { name: operations, containerPort: {{ .root.Values.operationsPort }} }
# /healthz responds without Redis, so that a Redis that is away restarts nothing.
startupProbe:
  httpGet: { path: /healthz, port: operations }
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: operations }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: operations }
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- if and $values.drainSeconds (gt (int $values.drainSeconds) 0) }}
# SIGTERM closes the port. Until every proxy knows that this pod is going away, it must still respond.
lifecycle:
  preStop:
    sleep: { seconds: {{ $values.drainSeconds }} }
{{- end }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: secrets, mountPath: /etc/posthorn/secrets, readOnly: true }
  {{- if or .root.Values.redisCa.secret .root.Values.redisCa.configMap }}
  - { name: redis-ca, mountPath: /etc/posthorn/redis-ca, readOnly: true }
  {{- end }}
  {{- with $pod.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
