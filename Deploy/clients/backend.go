// timelinegateway.go for Deploy/check-backend: orders on standard input, a line each, answered so.
// SSL_CERT_FILE names the CA.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	file "check/timelinegateway"
)

type order struct {
	Do, Key, Kid, Iss, Aud, App, Sub, Scope, URL, Token, Jws string
	Attributes                                               map[string]any
	TTL, Patience, Now                                       float64
	Events                                                   []file.Event
	Change                                                   file.Change
	Keys, Verifier                                           []string
	Fields                                                   map[string]string
	Body                                                     []byte
}

var verifiers = map[string]*file.Verifier{}

func act(o order) (any, error) {
	now, ctx := time.UnixMilli(int64(o.Now*1000)), context.Background()
	switch o.Do {
	case "mint":
		signer, err := file.NewSigner([]byte(o.Key), o.Kid, o.Iss, o.Aud)
		if err != nil {
			return nil, err
		}
		return signer.Token(o.App, o.Sub, file.Grant{
			Scope: o.Scope, Attributes: o.Attributes, Lifetime: time.Duration(o.TTL) * time.Second})
	case "post":
		token := func(context.Context) (string, error) { return o.Token, nil }
		gateway := file.Gateway{URL: o.URL, App: o.App, Token: token}
		return gateway.Post(ctx, o.Events, time.Duration(o.Patience*float64(time.Second)))
	case "event":
		return file.NewEvent("/game", o.Change), nil
	case "webhook":
		fields := http.Header{}
		for name, value := range o.Fields {
			fields.Set(name, value)
		}
		id, document, err := file.VerifyWebhook(o.Keys, o.App, fields, o.Body, now)
		return map[string]any{"id": id, "document": document}, err
	}
	name := strings.Join(o.Verifier, " ")
	if verifiers[name] == nil {
		verifiers[name] = &file.Verifier{Issuer: o.Verifier[0], App: o.Verifier[1]}
		if len(o.Verifier) > 2 {
			verifiers[name].KeysURL = o.Verifier[2]
		}
	}
	return verifiers[name].Verify(ctx, o.Jws, now)
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			panic(err)
		}
		value, err := act(o)
		answer := map[string]any{"value": value}
		var rejection *file.Rejection
		var failure *file.Error
		if errors.As(err, &rejection) {
			answer = map[string]any{"rejected": rejection.Field, "text": err.Error()}
		} else if errors.As(err, &failure) {
			places := []string{}
			for _, fault := range failure.Faults {
				places = append(places, fault.Place)
			}
			answer = map[string]any{"refused": failure.Status, "text": err.Error(),
				"after": failure.RetryAfter.Seconds(), "places": places}
		} else if err != nil {
			answer = map[string]any{"failed": err.Error()}
		}
		json.NewEncoder(os.Stdout).Encode(answer)
	}
}
