# There too: the data changes, and then the gateway is told.
echo 12 >minutes-late
TIMELINE_GATEWAY_TOKEN=$backend "$programs/timelinectl" post --app com.example.ferry \
    --entity Departure --property minutesLate
