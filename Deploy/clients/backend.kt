// TimelineGateway.kt for Deploy/check-backend: orders on standard input, a line each, answered so.
// The argument is the CA.
import java.io.File
import java.security.KeyStore
import java.security.cert.CertificateFactory
import javax.net.ssl.HttpsURLConnection
import javax.net.ssl.SSLContext
import javax.net.ssl.TrustManagerFactory
import org.json.JSONArray
import org.json.JSONObject
import timelinegateway.GatewayError
import timelinegateway.NotificationVerifier
import timelinegateway.Rejection
import timelinegateway.Stale
import timelinegateway.TimelineGateway
import timelinegateway.Widget

var uptime = 0.0
val verifiers = mutableMapOf<String, NotificationVerifier>()
val state = object : TimelineGateway.State { override var text: String? = null }
var gateway: TimelineGateway? = null
var stale: Stale? = null

fun act(order: JSONObject): Any = when (order.getString("do")) {
    "verify" -> {
        val texts = order.getJSONArray("verifier")
        val (issuer, app) = List(2) { texts.getString(it) }
        val keys = texts.optString(2).ifEmpty { "$issuer/.well-known/jwks.json" }
        uptime = order.getDouble("now") // Of the keys' age.
        verifiers.getOrPut(texts.toString()) { NotificationVerifier(issuer, app, keys) { uptime } }
            .verify(order.getString("jws"), uptime)
    }
    "stale" -> {
        val tokens = order.getJSONArray("tokens")
        // Each time a new process: all that is kept is the state.
        val made = TimelineGateway(
            order.getString("url"), order.getString("app"), order.getString("client"), state,
        ) { again -> tokens.getString(if (again) 1 else 0) }
        gateway = made
        val listed = order.getJSONArray("widgets")
        val widgets = List(listed.length()) { listed.getJSONObject(it) }.map { one ->
            val given = one.getJSONObject("parameters")
            Widget(one.getString("kind"), one.getString("family"),
                given.keys().asSequence().associateWith { given.get(it) })
        }
        val found = made.stale(widgets, "16", emptyList())
        stale = found
        JSONArray(found.widgets.map { it.parameters.values.firstOrNull() ?: it.kind })
    }
    else -> {
        gateway!!.confirm(stale!!)
        JSONObject(state.text!!).getString("cursor")
    }
}

fun main(arguments: Array<String>) {
    val authorities = KeyStore.getInstance(KeyStore.getDefaultType()).apply { load(null) }
    File(arguments[0]).inputStream().use { file ->
        CertificateFactory.getInstance("X.509").generateCertificates(file)
            .forEachIndexed { index, one -> authorities.setCertificateEntry("$index", one) }
    }
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm())
        .apply { init(authorities) }
    HttpsURLConnection.setDefaultSSLSocketFactory(
        SSLContext.getInstance("TLS").apply { init(null, trust.trustManagers, null) }.socketFactory)
    for (line in generateSequence(::readLine)) {
        val answer = JSONObject()
        try {
            answer.put("value", act(JSONObject(line)))
        } catch (error: Rejection) {
            answer.put("rejected", error.field).put("text", error.message)
        } catch (error: GatewayError) {
            answer.put("refused", error.status).put("text", error.message)
        } catch (error: Exception) {
            answer.put("failed", error.toString())
        }
        println(answer)
    }
}
