{{- define "gateway.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: timeline-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gateway.container" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "gateway.pod" -}}
metadata:
  labels: {{- include "gateway.labels" . | nindent 4 }}
spec:
  automountServiceAccountToken: false
  # Its variables would begin with TIMELINE_GATEWAY_ if the release is called so: as options do.
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # Once: a file's mode is kept then, and private keys stay private.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  # 5 s until nothing new is sent here, 20 s for requests in flight, and the rest for the store.
  terminationGracePeriodSeconds: 45
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.cluster.enabled }}
  initContainers:
    # Files of a Secret belong to root and its readers to a group. The gateway refuses such a key.
    - name: private-copy
      {{- include "gateway.container" . | nindent 6 }}
      command: [sh, -c, "install -m 600 /from/* /secrets/cluster/"]
      volumeMounts:
        - {name: cluster-secret, mountPath: /from, readOnly: true}
        - {name: cluster, mountPath: /secrets/cluster}
  {{- end }}
  containers:
    - name: gateway
      {{- include "gateway.container" . | nindent 6 }}
      {{- if .Values.cluster.enabled }}
      env:
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - {name: TIMELINE_GATEWAY_CLUSTER_NODE, value: "$(POD_IP):9443"}
      {{- end }}
      ports:
        - {name: https, containerPort: 8443}
        - {name: probes, containerPort: 8081}
        {{- if .Values.cluster.enabled }}
        - {name: nodes, containerPort: 9443}
        {{- end }}
        {{- if .Values.metrics.enabled }}
        - {name: admin, containerPort: 9464}
        {{- end }}
      # A start may read a long log, and a node's waits for the database.
      startupProbe:
        httpGet: {path: /livez, port: probes}
        periodSeconds: 2
        failureThreshold: 300
      livenessProbe:
        httpGet: {path: /livez, port: probes}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: probes}
        periodSeconds: 2
        timeoutSeconds: 2
      lifecycle:
        preStop: {sleep: {seconds: 5}}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/timeline-gateway}
        - {name: config, mountPath: /etc/timeline-gateway, readOnly: true}
        - {name: tls, mountPath: /secrets/tls, readOnly: true}
        {{- if .Values.cluster.enabled }}
        - {name: cluster, mountPath: /secrets/cluster, readOnly: true}
        {{- end }}
        {{- range .Values.secrets }}
        - {name: {{ printf "secret-%s" . }}, mountPath: {{ printf "/secrets/%s" . }}, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "gateway.name" . }}}
    - name: tls
      secret: {secretName: {{ required "tlsSecret: name a Secret with the certificate" .Values.tlsSecret }}}
    {{- if .Values.cluster.enabled }}
    - name: data
      emptyDir: {}
    - name: cluster-secret
      secret: {secretName: {{ required "cluster.secret: name a Secret with cluster.key" .Values.cluster.secret }}}
    - name: cluster
      emptyDir: {medium: Memory, sizeLimit: 1Mi}
    {{- end }}
    {{- range .Values.secrets }}
    - name: secret-{{ . }}
      secret: {secretName: {{ . }}}
    {{- end }}
  {{- if .Values.cluster.enabled }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "gateway.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
