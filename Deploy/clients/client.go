// Go's net/http for Deploy/check-clients, and its reverse proxy; SSL_CERT_FILE names the CA:
//
//	client h1|h2 https://localhost:PORT
//	client proxy h1|h2 ADDRESS https://localhost:PORT CERTIFICATE-AND-KEY
//
// The client reads orders from standard input, a line each, and sends all of them at once. It
// writes a line for each line of a stream, and at last one with the status and body, or the error.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

type order struct {
	ID                                int
	Method, Path, File                string
	Headers                           map[string]string
	InPieces, Chunked, Stream, Cancel bool
	Patience                          float64
}

type report map[string]interface{}

func transport(protocol string) *http.Transport {
	made := &http.Transport{ForceAttemptHTTP2: protocol == "h2", MaxIdleConnsPerHost: 100}
	if protocol == "h1" {
		made.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return made
}

// body is read in small pieces, or as it comes; nothing can repeat a request with it.
type body struct {
	rest     []byte
	inPieces bool
	turn     int
}

func (b *body) Read(into []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	if b.turn++; b.inPieces && len(into) > 1+b.turn*7%16 {
		into = into[:1+b.turn*7%16]
	}
	count := copy(into, b.rest)
	b.rest = b.rest[count:]
	return count, nil
}

func send(ctx context.Context, client *http.Client, base string, o order, say func(report)) error {
	request, err := http.NewRequestWithContext(ctx, o.Method, base+o.Path, nil)
	if err != nil {
		return err
	}
	if o.File != "" {
		bytes, err := os.ReadFile(o.File)
		if err != nil {
			return err
		}
		request.Body, request.ContentLength = io.NopCloser(&body{bytes, o.InPieces, 0}), -1
		if !o.Chunked {
			request.ContentLength = int64(len(bytes))
		}
	}
	for name, value := range o.Headers {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for o.Stream && answer.StatusCode == 200 && lines.Scan() {
		say(report{"id": o.ID, "line": lines.Text()})
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		say(report{"id": o.ID, "status": answer.StatusCode, "text": string(text)})
	}
	return err
}

func main() {
	arguments := os.Args[1:]
	if arguments[0] == "proxy" {
		target, _ := url.Parse(arguments[3])
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport, proxy.FlushInterval = transport(arguments[1]), -1
		panic(http.ListenAndServeTLS(arguments[2], arguments[4], arguments[4], proxy))
	}
	client := &http.Client{Transport: transport(arguments[0])}
	var lock sync.Mutex
	reports, cancels := json.NewEncoder(os.Stdout), map[int]context.CancelFunc{}
	say := func(one report) {
		lock.Lock()
		defer lock.Unlock()
		reports.Encode(one)
	}
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		if o.Cancel {
			cancels[o.ID]()
			continue
		}
		ctx, cancel := context.WithTimeout(
			context.Background(), time.Duration(o.Patience*float64(time.Second)))
		cancels[o.ID] = cancel
		go func() {
			defer cancel()
			if err := send(ctx, client, arguments[1], o, say); err != nil {
				say(report{"id": o.ID, "error": err.Error()})
			}
		}()
	}
}
