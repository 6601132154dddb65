/**
 * Keeps the widgets of an Android app current: registers them, and rebuilds those that are stale.
 *
 * Not compiled here, because there is no Android SDK. Needs TimelineGateway.kt, the packages
 * androidx.work:work-runtime-ktx and, for `glanceWidgets`, androidx.glance:glance-appwidget. The
 * guide OtherScreens.md says who calls it.
 */
package timelinegateway

import android.content.Context
import android.os.Build
import android.os.SystemClock
import androidx.glance.GlanceId
import androidx.glance.appwidget.GlanceAppWidget
import androidx.glance.appwidget.GlanceAppWidgetManager
import androidx.work.BackoffPolicy
import androidx.work.Constraints
import androidx.work.CoroutineWorker
import androidx.work.ExistingPeriodicWorkPolicy
import androidx.work.ExistingWorkPolicy
import androidx.work.NetworkType
import androidx.work.OneTimeWorkRequestBuilder
import androidx.work.PeriodicWorkRequestBuilder
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import java.util.UUID
import java.util.concurrent.TimeUnit
import kotlin.random.Random
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/** What is kept between processes. */
class PreferencesState(context: Context) : TimelineGateway.State {
    private val kept = context.getSharedPreferences("timeline-gateway", Context.MODE_PRIVATE)

    override var text: String?
        get() = kept.getString("state", null)
        set(value) { kept.edit().putString("state", value).commit() }

    /** The FCM token that is registered with everything else. */
    var token: String?
        get() = kept.getString("token", null)
        set(value) { kept.edit().putString("token", value).commit() }

    /** The id of this installation. Keep this file out of backups: another device needs another. */
    val client: String = kept.getString("client", null)
        ?: UUID.randomUUID().toString().also { kept.edit().putString("client", it).commit() }
}

/** A placed widget, and how it is drawn from what the app has stored. */
class Placed(val widget: Widget, val update: suspend () -> Unit)

/**
 * Returns the placed widgets that `drawing` draws. `parameters` returns what a person chose, by the
 * catalog's names, or null if that has not happened yet.
 */
suspend fun glanceWidgets(
    context: Context, kind: String, drawing: GlanceAppWidget,
    parameters: suspend (GlanceId) -> Map<String, Any?>? = { emptyMap() },
): List<Placed> = GlanceAppWidgetManager(context).getGlanceIds(drawing.javaClass).mapNotNull { id ->
    parameters(id)?.let { Placed(Widget(kind, "appWidget", it)) { drawing.update(context, id) } }
}

/** `fetch` gets what a widget shows, and stores it. `placed` returns the widgets of a moment. */
class AppWidgets(
    private val gateway: TimelineGateway, private val state: PreferencesState,
    private val fetch: suspend (Widget) -> Unit, private val placed: suspend () -> List<Placed>,
) {
    private val one = Mutex()

    /** Rebuilds what is stale, and tells the gateway. Throws what the gateway or `fetch` throws. */
    suspend fun rebuild() = one.withLock {
        val placed = placed()
        val delivery = listOfNotNull(state.token?.let { mapOf("type" to "fcm", "token" to it) })
        val stale = withContext(Dispatchers.IO) {
            gateway.stale(placed.map { it.widget }, Build.VERSION.RELEASE, delivery)
        }
        val times = stale.widgets.associateWith { widget ->
            val began = SystemClock.elapsedRealtime()
            fetch(widget)
            for (one in placed) if (one.widget == widget) one.update()
            SystemClock.elapsedRealtime() - began
        }
        withContext(Dispatchers.IO) { gateway.confirm(stale, times) }
    }

    /** Runs [rebuild]; a process that was killed meanwhile, or has no network, does it later. */
    class Work(context: Context, given: WorkerParameters) : CoroutineWorker(context, given) {
        override suspend fun doWork(): Result = try {
            shared?.rebuild()
            Result.success()
        } catch (error: CancellationException) {
            throw error
        } catch (error: GatewayError) {
            when {
                !error.isTemporary -> Result.failure()
                error.retryAfter == 0L -> Result.retry()
                else -> Result.success()
                    .also { sync(applicationContext, error.retryAfter + Random.nextLong(30)) }
            }
        } catch (_: Exception) {
            Result.retry()
        }
    }

    companion object {
        @Volatile private var shared: AppWidgets? = null
        private val connected =
            Constraints.Builder().setRequiredNetworkType(NetworkType.CONNECTED).build()

        /** Call it in `Application.onCreate`, which comes before any work. */
        fun start(context: Context, widgets: AppWidgets) {
            shared = widgets
            // FCM promises no delivery, and the gateway forgets who is not heard of for 90 days.
            val daily = PeriodicWorkRequestBuilder<Work>(1, TimeUnit.DAYS)
                .setConstraints(connected).build()
            WorkManager.getInstance(context).enqueueUniquePeriodicWork(
                "timeline-gateway-daily", ExistingPeriodicWorkPolicy.KEEP, daily)
        }

        /**
         * Asks the gateway soon what is stale. A push only wakes: one before it may be lost, so
         * only an answer from the cursor that is kept here says everything, and may move it.
         */
        fun sync(context: Context, after: Long = 0) {
            val first = Random.nextLong(10, 30)
            val work = OneTimeWorkRequestBuilder<Work>().setConstraints(connected)
                .setInitialDelay(after, TimeUnit.SECONDS)
                .setBackoffCriteria(BackoffPolicy.EXPONENTIAL, first, TimeUnit.SECONDS).build()
            // What runs now may have asked before the change, and what failed may wait for hours.
            // Nothing is lost by ending it: it has confirmed nothing.
            WorkManager.getInstance(context)
                .enqueueUniqueWork("timeline-gateway", ExistingWorkPolicy.REPLACE, work)
        }

        /** Registers the token that FCM gave, or gave anew, with everything else. */
        fun onToken(context: Context, token: String) {
            shared?.state?.token = token
            sync(context)
        }
    }
}
