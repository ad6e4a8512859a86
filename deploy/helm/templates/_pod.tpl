{{- define "perihelion.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "perihelion.labels" -}}
app.kubernetes.io/name: perihelion
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What pods of both kinds share: no privileges, a read-only root, and a writable place for pins and temporary files. */ -}}
{{- define "perihelion.pod" -}}
terminationGracePeriodSeconds: 60
securityContext: { runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: { type: RuntimeDefault } }
volumes:
  - { name: settings, configMap: { name: {{ .Release.Name }} } }
  {{- with .Values.data.claim }}
  - { name: data, persistentVolumeClaim: { claimName: {{ . }} } }
  {{- else }}
  - { name: data, emptyDir: {} }
  {{- end }}
  - { name: tmp, emptyDir: {} }
{{- end }}

{{- define "perihelion.container" -}}
image: {{ include "perihelion.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
workingDir: /etc/perihelion
securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
envFrom: [{ secretRef: { name: {{ .Values.secret }} } }]
env: [{ name: PERIHELION_TRUST_PINS_FILE, value: /var/lib/perihelion/mcp-servers.lock }]
volumeMounts:
  - { name: settings, mountPath: /etc/perihelion, readOnly: true }
  - { name: data, mountPath: /var/lib/perihelion }
  - { name: tmp, mountPath: /tmp }
{{- end }}
