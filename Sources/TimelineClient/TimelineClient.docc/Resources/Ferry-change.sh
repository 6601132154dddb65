# In a second terminal, with the same variables: the data changes, then the gateway is told.
echo 12 >../ferry/minutes-late
TIMELINE_GATEWAY_TOKEN=$backend .build-release/release/timelinectl post \
    --url "$URL" --ca "$CA" --app com.example.ferry \
    --entity Departure --property minutesLate
