# In this project's directory, after Deploy/run: tokens for an app of our own.
. .build-run/env
gateway=.build-release/release/timeline-gateway
backend=$($gateway token --data .build-run/data --app com.example.ferry \
    --scope "catalog:write changes:write" --sub harbour)
phone=$($gateway token --data .build-run/data --app com.example.ferry \
    --scope client --sub my-phone)

# What the widget depends on.
curl -sS --cacert "$CA" -H "Authorization: Bearer $backend" -X PUT \
    -H 'Content-Type: application/yaml' --data-binary @../ferry/catalog.yaml \
    "$URL/v1/apps/com.example.ferry/catalog"

# The widget, in its own directory.
cd ../ferry
echo 0 >minutes-late
FERRY_GATEWAY=$URL FERRY_CA=$CA FERRY_TOKEN=$phone swift run
