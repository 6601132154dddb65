/**
 * Registers the widgets of an Android app with a Timeline Gateway, asks which are stale, and
 * verifies the answers.
 *
 * Copy this file and AppWidgets.kt into your app, which has to require Android 8 (API 26). Of
 * Android this file uses org.json only, and no other package. `Deploy/check-backend` compiles it
 * for the JVM, and runs it against a gateway. Not run here: Android, for there is no Android SDK.
 *
 * Every Android verifies ES256; Ed25519 only one with a Conscrypt of 2026. Set `signing.algorithm:
 * ES256` in the gateway's configuration, or add a newer Conscrypt to the app, as a provider.
 */
package timelinegateway

import java.io.IOException
import java.math.BigInteger
import java.net.HttpURLConnection
import java.net.URL
import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.Provider
import java.security.PublicKey
import java.security.Security
import java.security.Signature
import java.security.spec.X509EncodedKeySpec
import java.util.Base64
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

/** A widget as a person configured it. A parameter is a text, a list of texts, or null if unset. */
data class Widget(val kind: String, val family: String, val parameters: Map<String, Any?>) {
    internal val json: JSONObject
        get() {
            val values = JSONObject()
            for ((name, value) in parameters.toSortedMap()) {
                val one = if (value is List<*>) JSONArray(value) else value
                values.put(name, one ?: JSONObject.NULL)
            }
            return JSONObject().put("kind", kind).put("family", family).put("parameters", values)
        }

    /** Returns whether a verified notification names this widget's timeline. */
    internal fun isNamed(claims: JSONObject): Boolean {
        if (claims.opt("all") == true) return true
        val entries = claims.optJSONArray("reload") ?: return false
        return (0 until entries.length()).mapNotNull(entries::optJSONObject).any { entry ->
            val listed = entry.optJSONObject("parameters") ?: JSONObject()
            entry.opt("kind") == kind && listed.keys().asSequence().all { name ->
                val value = parameters[name]
                val one = listed.get(name)
                when {
                    one is JSONObject || one is JSONArray -> true
                    one == JSONObject.NULL -> value == null
                    else -> one.toString().let { it == value || value is List<*> && it in value }
                }
            }
        }
    }
}

/** What has to be rebuilt. [TimelineGateway.confirm] it when that is done, and not before. */
class Stale internal constructor(
    val widgets: List<Widget>, internal val state: JSONObject, internal val isOwed: Boolean)

/** The gateway was not reached (`status` 0), or refused a request. `code` names the problem. */
class GatewayError(
    val status: Int, val code: String, message: String, val retryAfter: Long = 0,
) : Exception(message) {
    /** Whether the same request may succeed later, or with another token. */
    val isTemporary get() = status in setOf(0, 401, 403, 408, 425, 429) || status >= 500
}

/** A notification is not valid; `field` names what, such as `exp`. */
class Rejection(val field: String, message: String) : Exception("$field: $message")

/**
 * The client of one installation. Its functions block; call one at a time, not on the main thread.
 *
 * `client` is a random id of this installation, made once. `token` returns a token from the app's
 * backend; `again` says that the gateway refused the last one. The app stores `state`, which is
 * `null` at first. `issuer` is the gateway's `publicURL`, if `url` is not.
 */
class TimelineGateway(
    private val url: String, private val app: String, client: String, private val state: State,
    issuer: String = url, private val token: (again: Boolean) -> String,
) {
    interface State {
        var text: String?
    }

    private val path = "$url/v1/apps/$app/clients/$client"
    private val verifier = NotificationVerifier(issuer, app, "$url/.well-known/jwks.json")

    /** Registers what is placed, if it is not registered as such, and returns what is stale. */
    fun stale(
        widgets: List<Widget>, osVersion: String, delivery: List<Map<String, String>>,
    ): Stale {
        val registration = JSONObject().put("platform", "Android").put("osVersion", osVersion)
            .put("widgets", JSONArray(widgets.groupingBy { it }.eachCount()
                .map { (widget, count) -> widget.json.put("count", count) }))
            .put("delivery", JSONArray(delivery.map { JSONObject(it) }))
        val kept = state.text?.let { JSONObject(it) } ?: JSONObject()
        val before = kept.optJSONObject("registration")
        if (before?.toString() != registration.toString()) kept.remove("digest")
        fun register() = ask("PUT", path, registration).json
            .also { kept.put("digest", it.get("digest")).put("registration", registration) }
        val registered = if (kept.has("digest")) null else register()
        // The cursor of a registration is only for a client that builds everything then.
        if (!kept.has("cursor")) {
            return Stale(widgets.distinct(), kept.put("cursor", registered!!.get("cursor")), true)
        }
        val answer = try {
            poll(kept)
        } catch (error: GatewayError) {
            when (error.code) {
                "registration-mismatch" -> register().let { poll(kept) }
                "unknown-client" -> {
                    state.text = null
                    return stale(widgets, osVersion, delivery)
                }
                else -> throw error
            }
        }
        val signed = answer.json.getJSONArray("notifications")
        val named = List(signed.length()) { verifier.verify(signed.getString(it), answer.now) }
        val known = before?.getJSONArray("widgets") ?: JSONArray()
        val old = List(known.length()) {
            JSONObject(known.getJSONObject(it).toString()).apply { remove("count") }.toString()
        }
        val stale = widgets.distinct()
            .filter { it.json.toString() !in old || named.any(it::isNamed) }
        val isOwed = stale.isNotEmpty() || named.isNotEmpty()
        return Stale(stale, kept.put("cursor", answer.json.get("cursor")), isOwed)
    }

    /** Stores that everything stale was rebuilt, in `ms` milliseconds, and tells the gateway. */
    fun confirm(stale: Stale, ms: Map<Widget, Long> = emptyMap()) {
        state.text = stale.state.toString()
        if (!stale.isOwed) return
        val rebuilt = stale.widgets.map { it.json.put("ms", ms[it]).apply { remove("family") } }
        val body = JSONObject().put("cursor", stale.state.get("cursor"))
            .put("rebuilt", JSONArray(rebuilt))
        try {
            ask("POST", "$path/acks", body, stale.state.getString("digest"))
        } catch (error: GatewayError) {
            // The next poll has the cursor, which confirms as much, and finds 404 and 409 too.
            if (!error.isTemporary && error.status !in 404..409) throw error
        }
    }

    private fun poll(kept: JSONObject) =
        ask("GET", "$path/reloads?since=${kept.get("cursor")}", null, kept.getString("digest"))

    private fun ask(
        method: String, url: String, body: JSONObject?, digest: String? = null,
        again: Boolean = false,
    ): Answer {
        val fields =
            mapOf("Authorization" to "Bearer ${token(again)}", "Timeline-Registration" to digest)
        try {
            return send(method, url, body, fields)
        } catch (error: GatewayError) {
            if (error.status != 401 || again) throw error
        }
        return ask(method, url, body, digest, again = true)
    }
}

/** Verifies notifications with the gateway's published keys, which it fetches and caches. */
class NotificationVerifier(
    private val issuer: String, private val app: String, private val keysURL: String,
    private val uptime: () -> Double = { System.nanoTime() / 1e9 },
) {
    private class Key(val alg: String, val key: PublicKey?)

    private var keys = emptyMap<String, Key>()
    private var fetched = Double.NEGATIVE_INFINITY
    private var tried = Double.NEGATIVE_INFINITY
    private var failure: GatewayError? = null

    /** Returns the claims of a compact JWS. `now` is the server's time in seconds. */
    @Synchronized
    fun verify(notification: String, now: Double): JSONObject {
        if (notification.length > 16_384) throw Rejection("size", "more than 16384 bytes")
        val parts = notification.split(".")
        if (parts.size != 3) throw Rejection("form", "not three parts joined by dots")
        val header = parsed(bytes(parts[0]))
        val type = (header.opt("typ") as? String)?.lowercase()?.removePrefix("application/")
        if (type != "timeline-reload+jwt") {
            throw Rejection("typ", "not that of a notification, timeline-reload+jwt")
        }
        if (header.has("crit")) throw Rejection("crit", "an extension that is not known")
        val kid = header.opt("kid") as? String ?: throw Rejection("kid", "missing")
        val named = key(kid)
        if (header.opt("alg") != named.alg) throw Rejection("alg", "the key is for ${named.alg}")
        val key = named.key ?: throw Rejection(
            "alg", "this system has no Ed25519: set signing.algorithm of the gateway to ES256")
        if (!isSigned("${parts[0]}.${parts[1]}", bytes(parts[2]), named.alg, key)) {
            throw Rejection("signature", "does not fit the key that kid names")
        }
        val claims = parsed(bytes(parts[1]))
        if (claims.opt("aud") != app) throw Rejection("aud", "for another app, not $app")
        if (claims.opt("iss") != issuer) throw Rejection("iss", "not by $issuer")
        val exp = claims.opt("exp") as? Number
        if (exp == null || exp.toDouble() <= now - 5) {
            throw Rejection("exp", "the notification has expired; poll with the same cursor")
        }
        return claims
    }

    private fun key(kid: String): Key {
        val now = uptime()
        // A gateway publishes a key 300 s before it signs with it.
        fun cached() = keys[kid].takeIf { now - fetched < 270 }
        cached()?.let { return it }
        if (now - tried >= 10) {
            tried = now
            try {
                keys = fetch()
                fetched = now
                failure = null
            } catch (error: GatewayError) {
                failure = error
            }
        }
        return cached() ?: throw failure ?: Rejection("kid", "no key of $keysURL has this name")
    }

    private fun fetch(): Map<String, Key> {
        val answer = send("GET", keysURL)
        val listed = answer.json.optJSONArray("keys")
            ?: throw GatewayError(answer.status, "", "$keysURL: not a JWK set")
        return (0 until listed.length()).mapNotNull(listed::optJSONObject).mapNotNull { jwk ->
            val kid = jwk.opt("kid") as? String
            val key = publicKey(jwk)
            if (kid == null || key == null) null else kid to key
        }.toMap()
    }

    /** Returns a key, or null if it is for something else, or none. */
    private fun publicKey(jwk: JSONObject): Key? {
        val isEC = jwk.opt("crv") == "P-256"
        val alg = if (isEC) "ES256" else "EdDSA"
        val expected = listOf(if (isEC) "EC" else "OKP", if (isEC) "P-256" else "Ed25519", alg)
        val type = listOf("kty", "crv").map(jwk::opt) + (jwk.opt("alg") ?: alg)
        if (type != expected || (jwk.opt("use") ?: "sig") != "sig") return null
        return try {
            val point = listOf("x", "y").take(if (isEC) 2 else 1).map { bytes(jwk.getString(it)) }
            if (point.any { it.size != 32 } || isEC && !isOnP256(point[0], point[1])) return null
            val encoded = point.fold(if (isEC) p256 else ed25519) { all, part -> all + part }
            // Where there is no Ed25519 the key is kept, to say so.
            Key(alg, provider(alg)?.let {
                val factory = KeyFactory.getInstance(names.getValue(alg).first, it)
                factory.generatePublic(X509EncodedKeySpec(encoded))
            })
        } catch (_: Exception) {
            null
        }
    }

    private fun isSigned(text: String, signature: ByteArray, alg: String, key: PublicKey): Boolean {
        if (signature.size != 64) return false
        val verifier = Signature.getInstance(names.getValue(alg).second, provider(alg)!!)
        verifier.initVerify(key)
        verifier.update(text.toByteArray(Charsets.US_ASCII))
        return try {
            verifier.verify(if (alg == "ES256") der(signature) else signature)
        } catch (_: GeneralSecurityException) {
            false
        }
    }

    private companion object {
        /** What Java calls the algorithm of a key, and that of a signature. */
        val names =
            mapOf("ES256" to ("EC" to "SHA256withECDSA"), "EdDSA" to ("Ed25519" to "Ed25519"))
        // What precedes the point of a public key in X.509.
        val p256 = hex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
        val ed25519 = hex("302a300506032b6570032100")

        fun number(text: String) = BigInteger(text, 16)

        fun hex(text: String) = text.chunked(2).map { it.toInt(16).toByte() }.toByteArray()

        /** Android's key store claims the algorithms too, but only for keys that it made. */
        fun provider(alg: String): Provider? = Security.getProviders().firstOrNull {
            val (key, signature) = names.getValue(alg)
            "AndroidKeyStore" !in it.name && it.getService("KeyFactory", key) != null &&
                it.getService("Signature", signature) != null
        }

        /** Not every provider checks this. */
        fun isOnP256(x: ByteArray, y: ByteArray): Boolean {
            val p = number("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
            val b = number("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b")
            val (left, right) = BigInteger(1, x) to BigInteger(1, y)
            if (left >= p || right >= p) return false
            return (right.pow(2) - left.pow(3) + left * number("3") - b).mod(p).signum() == 0
        }

        /** A JWS has r and s as they are, Java expects them in DER. */
        fun der(signature: ByteArray): ByteArray {
            val body = listOf(0..31, 32..63).fold(ByteArray(0)) { all, range ->
                val number = BigInteger(1, signature.sliceArray(range)).toByteArray()
                all + byteArrayOf(2, number.size.toByte()) + number
            }
            return byteArrayOf(0x30, body.size.toByte()) + body
        }
    }
}

internal class Answer(val status: Int, private val body: ByteArray, date: Long) {
    /** The server's time in seconds. */
    val now = date / 1000.0
    val json: JSONObject
        get() = try {
            parsed(body)
        } catch (_: Rejection) {
            throw GatewayError(status, "", "not a gateway's answer; check the URL")
        }
}

/** Returns a 2xx answer. Throws GatewayError. */
internal fun send(
    method: String, url: String, body: JSONObject? = null,
    fields: Map<String, String?> = emptyMap(),
): Answer {
    if (!url.startsWith("https://")) throw Rejection("url", "$url is not https://")
    val connection = URL(url).openConnection() as HttpURLConnection
    try {
        connection.requestMethod = method
        // A redirect would take the token to another server.
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.connectTimeout = 10_000
        connection.readTimeout = 10_000
        for ((name, value) in fields) if (value != null) connection.setRequestProperty(name, value)
        if (body != null) {
            connection.doOutput = true
            connection.setRequestProperty("Content-Type", "application/json")
            connection.outputStream.use { it.write(body.toString().toByteArray()) }
        }
        val status = connection.responseCode
        if (status in 200..299) {
            val data = connection.inputStream.use { it.readBytes() }
            val date = connection.getHeaderFieldDate("Date", System.currentTimeMillis())
            return Answer(status, data, date)
        }
        val text = connection.errorStream?.use { String(it.readBytes()) } ?: ""
        val problem = try { JSONObject(text) } catch (_: JSONException) { JSONObject() }
        val code = problem.optString("type").substringAfterLast(":")
        val after = connection.getHeaderField("Retry-After")?.toLongOrNull() ?: 0
        val detail = problem.optString("detail")
        throw GatewayError(status, code, "$url: $status $code; $detail", after)
    } catch (error: IOException) {
        throw GatewayError(0, "", "$url: $error")
    } finally {
        connection.disconnect()
    }
}

/** Returns what base64url without padding stands for; other encodings of it are faults. */
internal fun bytes(text: String): ByteArray {
    val data = runCatching { Base64.getUrlDecoder().decode(text) }.getOrNull()
    if (data == null || Base64.getUrlEncoder().withoutPadding().encodeToString(data) != text) {
        throw Rejection("form", "not strict base64url")
    }
    return data
}

internal fun parsed(data: ByteArray): JSONObject = try {
    JSONObject(Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data)).toString())
} catch (error: Throwable) {
    // Very deep arrays exhaust the stack.
    if (error is JSONException || error is IOException || error is StackOverflowError) {
        throw Rejection("form", "not a JSON object")
    }
    throw error
}
