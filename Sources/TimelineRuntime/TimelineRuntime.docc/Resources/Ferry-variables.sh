# In this project's directory, after Deploy/run: where the gateway is, and tokens for an app of our
# own.
. .build-run/env
programs=$PWD/.build-release/release
backend=$("$programs/timeline-gateway" token --data .build-run/data --app com.example.ferry \
    --scope "catalog:write changes:write" --sub harbour)
phone=$("$programs/timeline-gateway" token --data .build-run/data --app com.example.ferry \
    --scope client --sub my-phone)
export TIMELINE_GATEWAY_URL=$URL TIMELINE_GATEWAY_CA=$CA TIMELINE_GATEWAY_APP=com.example.ferry
cd ../ferry
