{{/* Names, labels and calculations that several templates share. */}}

{{- define "posthorn.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "posthorn" $name) }}{{ $name = printf "%s-posthorn" $name }}{{ end -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The labels that select the pods of an app. Takes {root, app}. */}}
{{- define "posthorn.selector" -}}
app.kubernetes.io/name: posthorn
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .app }}
{{- end -}}

{{/* The labels of a resource. Takes {root, app}; without app, those of a resource that all apps share. */}}
{{- define "posthorn.labels" -}}
{{- if .app }}
{{- include "posthorn.selector" . }}
{{- else -}}
app.kubernetes.io/name: posthorn
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "posthorn.image" -}}
{{- with .Values.image -}}
{{- if and .digest .tag }}{{ fail "image.tag and image.digest are both set, and the digest would win: set one, and the other to an empty text." }}{{ end -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* A value as the text of an environment variable. Integers stay integers, although Helm reads numbers as floats. */}}
{{- define "posthorn.text" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* The settings of an app that are no secrets, as JSON. Takes {root, app}. */}}
{{- define "posthorn.settings" -}}
{{- $known := .root.Files.Get "files/settings.json" | fromJson -}}
{{- $own := (index .root.Values .app).settings -}}
{{- $result := dict -}}
{{- range $name, $value := mergeOverwrite (deepCopy .root.Values.settings) $own -}}
{{- $text := include "posthorn.text" $value -}}
{{- $setting := get $known $name -}}
{{- if and (ne $text "") (not (kindIs "invalid" $value)) (has $.app $setting.apps) -}}
{{- $_ := set $result $name $text -}}
{{- end -}}
{{- end -}}
{{- toJson $result -}}
{{- end -}}

{{/* The secrets of an app as {setting: {name, key}}, as JSON. Fails if a required one is missing, or one is given twice. */}}
{{- define "posthorn.secrets" -}}
{{- $known := .root.Files.Get "files/settings.json" | fromJson -}}
{{- $settings := include "posthorn.settings" . | fromJson -}}
{{- $result := dict -}}
{{- range $name, $from := .root.Values.secrets.from -}}
{{- if and (kindIs "map" $from) (has $.app (get $known $name).apps) -}}
{{- if hasKey $settings $name }}{{ fail (printf "settings.%s and secrets.from.%s: give only one of them. secrets.from.%s: null removes the latter." $name $name $name) }}{{ end -}}
{{- $secret := $from.name | default $.root.Values.secrets.name -}}
{{- if not $secret }}{{ fail (printf "secrets.from.%s: which Secret has it? Give secrets.name." $name) }}{{ end -}}
{{- $_ := set $result $name (dict "name" $secret "key" ($from.key | default $name)) -}}
{{- end -}}
{{- end -}}
{{- range $name, $setting := $known -}}
{{- if and $setting.required (has $.app $setting.apps) (not (hasKey $result $name)) -}}
{{- fail (printf "secrets.from.%s: is required, because %s needs it." $name $.app) -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey $settings "NOTICE_URL") (not (hasKey $result "NOTICE_SECRET")) }}{{ fail "secrets.from.NOTICE_SECRET: is required if settings.NOTICE_URL is set." }}{{ end -}}
{{- toJson $result -}}
{{- end -}}

{{/* A duration such as 20s in whole seconds, rounded up. */}}
{{- define "posthorn.seconds" -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$" .) }}{{ fail (printf "SHUTDOWN_GRACE: %q is not a number and ms, s, m, h or d." .) }}{{ end -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $factor := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0) $unit -}}
{{- mulf (trimSuffix $unit . | float64) $factor | ceil | int64 -}}
{{- end -}}

{{/* How long Kubernetes waits for a process of an app: the drain, SHUTDOWN_GRACE and the margin. Takes {root, app}. */}}
{{- define "posthorn.terminationSeconds" -}}
{{- $settings := include "posthorn.settings" . | fromJson -}}
{{- $grace := include "posthorn.seconds" ($settings.SHUTDOWN_GRACE | default "20s") | int64 -}}
{{- add ((index .root.Values .app).drainSeconds | default 0) $grace .root.Values.terminationMarginSeconds -}}
{{- end -}}

{{/* A quantity of memory such as 512Mi in MiB. */}}
{{- define "posthorn.mebibytes" -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- $factor := get (dict "Mi" 1.0 "Gi" 1024.0 "M" 0.95367 "G" 953.67) $unit -}}
{{- if not (and $factor (regexMatch "^[0-9]+(\\.[0-9]+)?[A-Za-z]+$" .)) }}{{ fail (printf "limits.memory: %q must end in Mi, Gi, M or G, because Node's heap is derived from it." .) }}{{ end -}}
{{- mulf (trimSuffix $unit . | float64) $factor | floor | int64 -}}
{{- end -}}

{{/* Fails if a worker's memory is too small for the largest events (docs/kubernetes.md#memory). Takes {root, memory}. */}}
{{- define "posthorn.checkLargeEvents" -}}
{{- $bytes := include "posthorn.settings" (dict "root" .root "app" "ingest") | fromJson | dig "MAX_EVENT_BYTES" "262144" | int64 -}}
{{- $slots := include "posthorn.settings" (dict "root" .root "app" "worker") | fromJson | dig "WORKER_CONCURRENCY" "100" | int64 -}}
{{- $needed := add 150 (div (mul 4 $bytes $slots) 1048576) -}}
{{- if lt (include "posthorn.mebibytes" .memory | int64) $needed -}}
{{- fail (printf "worker.resources.limits.memory: must be at least %dMi for MAX_EVENT_BYTES and WORKER_CONCURRENCY." $needed) -}}
{{- end -}}
{{- end -}}

{{/* The options of an app's pods: `pod` of all and that of the app, as JSON. Takes {root, app}. */}}
{{- define "posthorn.pod" -}}
{{- mergeOverwrite (deepCopy .root.Values.pod) (index .root.Values .app).pod | toJson -}}
{{- end -}}
