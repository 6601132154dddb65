// Package timelinegateway posts changes to a Timeline Gateway, signs tokens for it, and verifies
// what it sends. Copy this file into your backend. It needs Go 1.19 and its standard library.
//
//	url, issuer := "https://gateway.example", "https://accounts.example"
//	gateway := timelinegateway.Gateway{URL: url, App: "com.mygame", Token: token}
//	change := timelinegateway.Change{Entity: "CharacterDetail", ID: "panda"}
//	event := timelinegateway.NewEvent("/game", change)
//	accepted, err := gateway.Post(ctx, []timelinegateway.Event{event}, time.Minute)
//
//	signer, err := timelinegateway.NewSigner(pem, "2026-11", issuer, url)
//	token, err := signer.Token("com.mygame", "my-iphone", timelinegateway.Grant{})
//
//	verifier := timelinegateway.Verifier{Issuer: url, App: "com.mygame"}
//	id, document, err := timelinegateway.VerifyWebhook(keys, app, request.Header, body, time.Now())
//	claims, err := verifier.Verify(ctx, jws, time.Now())
//
// A gateway and a verifier may be shared by goroutines. No secret is compared, so nothing has to
// take constant time.
package timelinegateway

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of the gateway with its default configuration, and of this file.
const (
	postEvents, postBytes, notificationBytes = 1_000, 8 << 20, 16_384
	answerBytes, webhookSignatures           = 1 << 20, 8
	attemptTimeout, backoffMax               = 15 * time.Second, time.Minute
	keysTimeout, keysPause                   = 10 * time.Second, 10 * time.Second
	keysLifetime                             = 270 * time.Second // Keys are published 300 s early.
	expiryTolerance, webhookTolerance        = 5 * time.Second, 5 * time.Minute
)

// Change is a change of data; the guide for backends explains the members. A value of Attributes is
// a string or a []string.
type Change struct {
	Entity     string         `json:"entity"`
	ID         string         `json:"id,omitempty"`
	Operation  string         `json:"operation,omitempty"`
	Properties []string       `json:"properties,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Urgency    string         `json:"urgency,omitempty"`
}

// Event is a CloudEvent with a change.
type Event struct {
	SpecVersion string `json:"specversion"`
	Type        string `json:"type"`
	Source      string `json:"source"`
	ID          string `json:"id"`
	Data        Change `json:"data"`
}

// NewEvent returns an event with a random id. Source says who posts, such as /game. The id makes
// repeating harmless: make the event once, and post that until it is accepted. With an outbox, set
// the id to the row's.
func NewEvent(source string, change Change) Event {
	return Event{"1.0", "change", source, randomID(), change}
}

// Accepted says how many events were accepted, and the highest sequence.
type Accepted struct{ Accepted, Duplicates, Unmatched, Broad, Sequence int64 }

// Error says that the gateway was not reached, which is Status 0, or refused a request.
type Error struct {
	URL        string        `json:"-"`
	Status     int           `json:"-"`
	RetryAfter time.Duration `json:"-"`
	Code       string        `json:"type"` // Names the problem, such as event-id-reused.
	Detail     string
	Faults     []Fault
	cause      error
}

// Fault is a place in a post, such as [3].data.entity, and what is wrong there.
type Fault struct{ Place, Message string }

func (e *Error) Error() string {
	text := e.URL + ": no answer"
	if e.Status != 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s: %d %s", e.URL, e.Status, e.Code))
	}
	for index := 0; index < len(e.Faults) && index < 5; index++ {
		text += "; " + e.Faults[index].Place + ": " + e.Faults[index].Message
	}
	if len(e.Faults) == 0 && e.Detail != "" {
		text += "; " + e.Detail
	}
	return text
}

// Unwrap returns why there was no answer; nil if there was one.
func (e *Error) Unwrap() error { return e.cause }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	return e.Status == 0 || e.Status == 408 || e.Status == 425 || e.Status == 429 || e.Status >= 500
}

// Rejection says that something is not valid; Field names what, such as exp.
type Rejection struct{ Field, Message string }

func (r *Rejection) Error() string { return r.Field + ": " + r.Message }

// Gateway posts the changes of one app.
type Gateway struct {
	URL, App string
	// Token returns a token with the scope changes:write, and is called before each attempt.
	Token func(context.Context) (string, error)
	// Transport is needed if the system does not trust the gateway's authority.
	Transport http.RoundTripper
}

// Post posts events after the commit of the data, and returns the sums of the answers.
//
// An attempt that was lost, or answered 408, 425, 429 or 5xx, is repeated with the same ids after
// Retry-After and a random time that grows, while it can begin within the patience from the first
// attempt; with 0, never. When Post fails, some of many events may be accepted. Post all of them
// again: those count as duplicates. The error is an *Error, a *Rejection or one of the context.
func (g *Gateway) Post(
	ctx context.Context, events []Event, patience time.Duration,
) (total Accepted, err error) {
	if err := checked("app", g.App); err != nil {
		return total, err
	}
	texts := make([][]byte, len(events)) // All are encoded before one is sent.
	for number, event := range events {
		if texts[number], err = json.Marshal(event); err != nil {
			return total, &Rejection{fmt.Sprintf("[%d]", number), err.Error()}
		}
	}
	for first, end := 0, 0; first < len(texts); first = end {
		size := 2
		for ; end < len(texts) && end-first < postEvents; end++ {
			if size += len(texts[end]) + 1; size > postBytes && end > first {
				break
			}
		}
		body := "[" + string(bytes.Join(texts[first:end], []byte(","))) + "]"
		answer, err := g.post(ctx, []byte(body), first, patience)
		if err != nil {
			return total, err
		}
		total.Accepted += answer.Accepted
		total.Duplicates += answer.Duplicates
		total.Unmatched += answer.Unmatched
		total.Broad += answer.Broad
		if answer.Sequence > total.Sequence {
			total.Sequence = answer.Sequence
		}
	}
	return total, nil
}

func (g *Gateway) post(
	ctx context.Context, body []byte, first int, patience time.Duration,
) (Accepted, error) {
	end := time.Now().Add(patience)
	for most := time.Second; ; most *= 2 {
		answer, err := g.attempt(ctx, body, first)
		var failure *Error
		if !errors.As(err, &failure) || !failure.Temporary() {
			return answer, err
		}
		if most > backoffMax {
			most = backoffMax
		}
		random, _ := rand.Int(rand.Reader, big.NewInt(int64(most)))
		wait := failure.RetryAfter + time.Duration(random.Int64())
		if time.Now().Add(wait).After(end) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (g *Gateway) attempt(ctx context.Context, body []byte, first int) (total Accepted, err error) {
	token, err := g.Token(ctx)
	if err != nil {
		return total, err
	}
	if token = strings.TrimSpace(token); !visible.MatchString(token) {
		return total, &Rejection{"token", "empty, or not visible ASCII"}
	}
	url := strings.TrimSuffix(g.URL, "/") + "/v1/apps/" + g.App + "/changes"
	status, text, err := send(ctx, g.Transport, attemptTimeout, "POST", url, body, http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/cloudevents-batch+json"}})
	var failure *Error
	if errors.As(err, &failure) { // The gateway counts from the first event of a batch.
		for index, fault := range failure.Faults {
			if found := faultIndex.FindStringSubmatch(fault.Place); found != nil {
				number, _ := strconv.Atoi(found[1])
				failure.Faults[index].Place = fmt.Sprintf("[%d]%s", first+number, found[2])
			}
		}
	}
	if err != nil {
		return total, err
	}
	var answer struct {
		Accepted
		Sequence *int64
	}
	if json.Unmarshal(text, &answer) != nil || answer.Sequence == nil {
		detail := "not a gateway's answer; check the URL"
		return total, &Error{URL: url, Status: status, Detail: detail}
	}
	answer.Accepted.Sequence = *answer.Sequence
	return answer.Accepted, nil
}

// Signer signs tokens as an issuer that the gateway's configuration names.
type Signer struct {
	key                   ed25519.PrivateKey
	kid, issuer, audience string
}

// NewSigner makes a signer. The key is an Ed25519 private key in PEM (PKCS #8), kid its name in the
// issuer's key set, issuer the iss of the configuration, and audience the gateway's publicURL.
func NewSigner(key []byte, kid, issuer, audience string) (*Signer, error) {
	if block, _ := pem.Decode(key); block != nil {
		private, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
		if private, is := private.(ed25519.PrivateKey); is {
			return &Signer{private, kid, issuer, audience}, nil
		}
	}
	return nil, &Rejection{"key", "not an Ed25519 private key in PEM, without a passphrase"}
}

// Grant is what a token says besides the app and the subject.
type Grant struct {
	Scope string // Client, if empty.
	// Attributes decide which changes the client is notified of. A value is a string or a []string.
	// Take them from the session, never from the request.
	Attributes map[string]any
	Lifetime   time.Duration // A day, if 0; 30 days at most for a client.
}

// Token returns a token; sub is the client's id.
func (s *Signer) Token(app, sub string, grant Grant) (string, error) {
	if err := checked("app", app); err != nil {
		return "", err
	}
	if err := checked("sub", sub); err != nil {
		return "", err
	}
	if grant.Scope == "" {
		grant.Scope = "client"
	}
	if grant.Lifetime == 0 {
		grant.Lifetime = 24 * time.Hour
	}
	now := time.Now()
	claims := map[string]any{
		"iss": s.issuer, "aud": s.audience, "app": app, "sub": sub, "scope": grant.Scope,
		"iat": now.Unix(), "exp": now.Add(grant.Lifetime).Unix(), "jti": randomID()}
	if len(grant.Attributes) > 0 {
		claims["attributes"] = grant.Attributes
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", &Rejection{"attributes", err.Error()}
	}
	head, _ := json.Marshal(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": s.kid})
	signed := base64url.EncodeToString(head) + "." + base64url.EncodeToString(body)
	signature := ed25519.Sign(s.key, []byte(signed))
	return signed + "." + base64url.EncodeToString(signature), nil
}

// Verifier verifies notifications with the gateway's published keys, which it fetches and caches.
type Verifier struct {
	Issuer, App string            // The gateway's publicURL, and the app.
	KeysURL     string            // Is needed if the gateway's key set is reached elsewhere.
	Transport   http.RoundTripper // Is needed if the system does not trust the gateway's authority.

	lock     sync.Mutex
	keys     map[string]crypto.PublicKey
	fetched  time.Time     // Of the keys.
	tried    time.Time     // When the last attempt began.
	failure  error         // Of the last attempt.
	fetching chan struct{} // Is closed when the attempt in flight ends; nil if there is none.
}

// Verify returns the claims of a compact JWS. The same jti may arrive more than once. The error is
// a *Rejection, or another one if there are no keys: then verify it again later. Now is time.Now(),
// whose monotonic part tells the age of the keys.
func (v *Verifier) Verify(
	ctx context.Context, notification string, now time.Time,
) (map[string]any, error) {
	parts := strings.SplitN(notification, ".", 4)
	switch {
	case len(notification) > notificationBytes:
		return nil, &Rejection{"size", fmt.Sprintf("more than %d bytes", notificationBytes)}
	case len(parts) != 3:
		return nil, &Rejection{"form", "not three parts joined by dots"}
	}
	header, err := object(decode(parts[0]))
	if err != nil {
		return nil, err
	}
	// Maps are used, because a struct accepts members in any case.
	kind, _ := header["typ"].(string)
	_, hasCrit := header["crit"]
	kid, _ := header["kid"].(string) // No key is called "".
	switch {
	case !reloadType.MatchString(kind):
		return nil, &Rejection{"typ", "not that of a notification, timeline-reload+jwt"}
	case hasCrit:
		return nil, &Rejection{"crit", "an extension that is not known"}
	}
	key, err := v.key(ctx, kid, now)
	if err != nil {
		return nil, err
	}
	signature := decode(parts[2])
	switch {
	case header["alg"] != algorithmOf(key):
		return nil, &Rejection{"alg", "the key is for " + algorithmOf(key)}
	case signature == nil:
		return nil, &Rejection{"form", "not strict base64url"}
	case !isSigned([]byte(parts[0]+"."+parts[1]), signature, key):
		return nil, &Rejection{"signature", "does not fit the key that kid names"}
	}
	claims, err := object(decode(parts[1]))
	expires, isNumber := claims["exp"].(float64)
	switch {
	case err != nil:
		return nil, err
	case claims["aud"] != v.App:
		return nil, &Rejection{"aud", "for another app, not " + v.App}
	case claims["iss"] != v.Issuer:
		return nil, &Rejection{"iss", "not by " + v.Issuer}
	case !isNumber || expires <= float64(now.Add(-expiryTolerance).UnixNano())/1e9:
		return nil, &Rejection{"exp", "the notification has expired; poll with the same cursor"}
	}
	return claims, nil
}

func (v *Verifier) key(ctx context.Context, kid string, now time.Time) (crypto.PublicKey, error) {
	for {
		key, fetching, err := v.cached(kid, now)
		if fetching == nil {
			return key, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-fetching:
		}
	}
}

// cached returns a key, or what to wait for before the next call. It starts a due request.
func (v *Verifier) cached(kid string, now time.Time) (crypto.PublicKey, chan struct{}, error) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if key := v.keys[kid]; key != nil && now.Sub(v.fetched) < keysLifetime {
		return key, nil, nil
	}
	if v.fetching == nil && now.Sub(v.tried) >= keysPause {
		v.tried, v.fetching = now, make(chan struct{})
		go v.fetch(now)
	}
	if v.fetching != nil || v.failure != nil {
		return nil, v.fetching, v.failure
	}
	return nil, nil, &Rejection{"kid", "no key of the gateway has this name"}
}

// fetch replaces the keys. After a failure, those there are stay until their time is over. It has a
// context of its own, because others may wait for it.
func (v *Verifier) fetch(now time.Time) {
	url := v.KeysURL
	if url == "" {
		url = strings.TrimSuffix(v.Issuer, "/") + "/.well-known/jwks.json"
	}
	ctx, fields := context.Background(), http.Header{}
	status, text, err := send(ctx, v.Transport, keysTimeout, "GET", url, nil, fields)
	keys := map[string]crypto.PublicKey{}
	var set struct{ Keys []json.RawMessage }
	if err == nil && (json.Unmarshal(text, &set) != nil || set.Keys == nil) {
		err = &Error{URL: url, Status: status, Detail: "not a JWK set; check the URL"}
	}
	for _, text := range set.Keys {
		if kid, key := publicKey(text); key != nil {
			keys[kid] = key
		}
	}
	v.lock.Lock()
	defer v.lock.Unlock()
	if v.failure = err; err == nil {
		v.keys, v.fetched = keys, now
	}
	close(v.fetching)
	v.fetching = nil
}

// VerifyWebhook verifies a webhook, or a question for a Live Activity's content, and returns its id
// and document.
//
// The keys are the webhookKeys of the registration's answer, or the contentKeys of the catalog's,
// and the body the bytes as they came, read with a limit, such as by http.MaxBytesReader. The error
// is a *Rejection: answer 400. A retry has the same id: answer it 2xx, and do not act on it twice.
// A gateway signs for all its apps by the same keys: a question that is not of the app is rejected
// here, and of a webhook only the notifications that a Verifier accepts are the app's.
func VerifyWebhook(
	keys []string, app string, fields http.Header, body []byte, now time.Time,
) (string, map[string]any, error) {
	id, stamp := fields.Get("Webhook-Id"), fields.Get("Webhook-Timestamp")
	seconds, _ := strconv.ParseInt(stamp, 10, 64)
	switch {
	case !webhookID.MatchString(id):
		return "", nil, &Rejection{"webhook-id", "missing, or not visible ASCII without dots"}
	case !digits.MatchString(stamp):
		return "", nil, &Rejection{"webhook-timestamp", "missing, or not seconds since 1970"}
	case now.Sub(time.Unix(seconds, 0)).Abs() > webhookTolerance:
		return "", nil, &Rejection{"webhook-timestamp", "more than 300 s from now"}
	}
	publics := make([]ed25519.PublicKey, len(keys))
	for number, key := range keys {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whpk_"))
		if err != nil || len(raw) != ed25519.PublicKeySize || !strings.HasPrefix(key, "whpk_") {
			return "", nil, &Rejection{"keys", "not each is whpk_ and 32 bytes in base64"}
		}
		publics[number] = raw
	}
	content, isGood := append([]byte(id+"."+stamp+"."), body...), false
	// A rotation has two. Anybody can send very many, each of which costs a check.
	entries := strings.SplitN(fields.Get("Webhook-Signature"), " ", webhookSignatures+1)
	for index := 0; index < len(entries) && index < webhookSignatures; index++ {
		version, text, _ := strings.Cut(entries[index], ",")
		signature, err := base64.StdEncoding.DecodeString(text)
		for _, key := range publics {
			isGood = isGood || version == "v1a" && err == nil && ed25519.Verify(key, content, signature)
		}
	}
	if !isGood {
		return "", nil, &Rejection{"webhook-signature", "no v1a signature by one of the keys"}
	}
	document, err := object(body)
	if _, is := document["notifications"]; err == nil && !is && document["app"] != app {
		err = &Rejection{"app", "a question for another app, not " + app}
	}
	if err != nil {
		return "", nil, err
	}
	return id, document, nil
}

var (
	base64url  = base64.RawURLEncoding.Strict()
	identifier = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	visible    = regexp.MustCompile(`^[!-~]+$`)
	webhookID  = regexp.MustCompile(`^[!-\-/-~]{1,256}$`)
	digits     = regexp.MustCompile(`^[0-9]{1,12}$`)
	faultIndex = regexp.MustCompile(`^\[([0-9]{1,9})\](.*)$`)
	reloadType = regexp.MustCompile(`(?i)^(application/)?timeline-reload\+jwt$`)
)

// publicKey returns the name and the key; nil if it is for something else.
func publicKey(text []byte) (string, crypto.PublicKey) {
	var jwk struct{ Kty, Crv, X, Y, Kid, Alg, Use string }
	if json.Unmarshal(text, &jwk) != nil || jwk.Kid == "" || jwk.Use != "" && jwk.Use != "sig" {
		return "", nil
	}
	x := decode(jwk.X)
	if len(x) != 32 {
		return "", nil
	}
	switch jwk.Kty + " " + jwk.Crv + " " + jwk.Alg {
	case "OKP Ed25519 EdDSA", "OKP Ed25519 ":
		return jwk.Kid, ed25519.PublicKey(x)
	case "EC P-256 ES256", "EC P-256 ":
		point := append(append([]byte{4}, x...), decode(jwk.Y)...)
		if x, y := elliptic.Unmarshal(elliptic.P256(), point); x != nil {
			return jwk.Kid, &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y}
		}
	}
	return "", nil
}

func algorithmOf(key crypto.PublicKey) string {
	if _, is := key.(ed25519.PublicKey); is {
		return "EdDSA"
	}
	return "ES256"
}

func isSigned(data, signature []byte, key crypto.PublicKey) bool {
	if key, is := key.(ed25519.PublicKey); is {
		return ed25519.Verify(key, data, signature)
	}
	digest, half := sha256.Sum256(data), len(signature)/2
	return len(signature) == 64 && ecdsa.Verify(key.(*ecdsa.PublicKey), digest[:],
		new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
}

// send returns the status and the body of a 2xx answer. The error is an *Error, a *Rejection of the
// URL, or that of the context.
func send(ctx context.Context, transport http.RoundTripper, timeout time.Duration,
	method, url string, body []byte, fields http.Header) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil || request.URL.Scheme != "https" {
		return 0, nil, &Rejection{"url", url + " is not https://"}
	}
	request.Header = fields
	client := http.Client{Timeout: timeout, Transport: transport,
		// A redirect would take the token to another server: it is an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	failure, text := &Error{URL: url}, []byte(nil)
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		failure.Status = answer.StatusCode
		text, err = io.ReadAll(io.LimitReader(answer.Body, answerBytes+1))
	}
	if err != nil && ctx.Err() != nil {
		return 0, nil, ctx.Err()
	}
	isGood := failure.Status >= 200 && failure.Status < 300
	if err != nil && (isGood || failure.Status == 0) {
		return 0, nil, &Error{URL: url, Detail: err.Error(), cause: err}
	}
	if isGood && len(text) <= answerBytes {
		return failure.Status, text, nil
	}
	if after := answer.Header.Get("Retry-After"); digits.MatchString(after) {
		seconds, _ := strconv.ParseUint(after, 10, 31)
		failure.RetryAfter = time.Duration(seconds) * time.Second
	}
	if json.Unmarshal(text, failure) != nil {
		failure.Detail = fmt.Sprintf("%.200q", text)
	}
	failure.Code = failure.Code[strings.LastIndex(failure.Code, ":")+1:]
	return 0, nil, failure
}

func checked(field, text string) error {
	if !identifier.MatchString(text) {
		return &Rejection{field, "not 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"}
	}
	return nil
}

// randomID returns a UUID of version 4.
func randomID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic(err) // The system has no random numbers: nothing can be signed either.
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// decode returns what base64url without padding stands for; nil for anything else, such as line
// ends, which Go skips.
func decode(text string) []byte {
	data, err := base64url.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil
	}
	return data
}

func object(data []byte) (map[string]any, error) {
	var value map[string]any
	if !utf8.Valid(data) || json.Unmarshal(data, &value) != nil || value == nil {
		return nil, &Rejection{"form", "not a JSON object, or not strict base64url"}
	}
	return value, nil
}
