{{- define "perfwalk.labels" -}}
app.kubernetes.io/name: perfwalk
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* A text, or a number as it was given: Helm has floats alone, and writes 500000000 as 5e+08. */ -}}
{{- define "perfwalk.scalar" -}}
{{- if kindIs "float64" . }}{{ regexReplaceAll "\\.?0+$" (printf "%.9f" .) "" }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{- define "perfwalk.config" -}}
[profiler]
samples_per_second = {{ .Values.rate }}
reporter_interval = {{ .Values.interval }}

[export:default]
endpoint = {{ .Values.export.endpoint }}
protocol = {{ .Values.export.protocol }}
preset = {{ .Values.export.preset }}
{{- if .Values.export.headersSecret }}
headers_file = /etc/perfwalk/secret/headers
{{- end }}
{{- range $section, $keys := merge (dict "filter" .Values.filter "limits" .Values.limits) .Values.config }}
{{- if $keys }}

[{{ $section }}]
{{- range $key, $value := $keys }}
{{ $key }} = {{ include "perfwalk.scalar" $value }}
{{- end }}
{{- end }}
{{- end }}
{{ end }}

{{- /* Where perfwalk looks for the names of containers. */ -}}
{{- define "perfwalk.names" -}}
{{- get (dict "containerd" "/run/containerd/io.containerd.runtime.v2.task" "crio" "/run/containers/storage" "docker" "/var/lib/docker/containers") .Values.runtime.kind -}}
{{- end }}

{{- define "perfwalk.attributes" -}}
{{- $all := list "host.name=$(NODE_NAME)" "k8s.node.name=$(NODE_NAME)" -}}
{{- range $name, $value := .Values.resourceAttributes }}
{{- $all = append $all (printf "%s=%s" $name (include "perfwalk.scalar" $value)) }}
{{- end }}
{{- join "," $all -}}
{{- end }}
