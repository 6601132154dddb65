# What the widget depends on.
TIMELINE_GATEWAY_TOKEN=$backend "$programs/timelinectl" catalog apply catalog.yaml

# The widget.
echo 0 >minutes-late
TIMELINE_GATEWAY_TOKEN=$phone TIMELINE_CLIENT_ARCHIVE=archive swift run
