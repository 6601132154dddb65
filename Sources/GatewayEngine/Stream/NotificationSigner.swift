import GatewayCore
import GatewaySigning
import Synchronization
import WidgetModel

/// Signs the notifications that shards emit: one signature per statement, shared by all recipients
/// on every event loop, so that fan-out costs no further signatures.
package final class NotificationSigner: Sendable {
    /// The maximum number of signed statements cached for other loops and later readers, per
    /// stripe.
    private static let keptMax = 512
    /// The lifetime of a cached statement, in seconds.
    private static let keptSeconds: Int64 = 20

    private struct Statement: Hashable {
        let app: String
        let content: StaleSet
        let cause: ChangeCause?
    }

    private struct Stripe {
        var kept: [Statement: (issuedAt: Int64, bytes: [UInt8])] = [:]
    }

    private let issuer: String
    private let lifetime: Int64
    private let signer: Mutex<JWSSigner>
    private let nonce: UInt64
    /// Striped, so that loops that sign different statements do not wait for each other.
    private let stripes: [Mutexed<Stripe>]
    package let signatures = Counter()

    /// - Parameters:
    ///   - issuer: The gateway's URL.
    ///   - lifetime: The time from `iat` to `exp`, in seconds.
    ///   - nonce: A random number that makes `jti` unique across starts.
    package init(issuer: String, lifetime: Int64, signer: JWSSigner, nonce: UInt64) {
        self.issuer = issuer
        self.lifetime = lifetime
        self.signer = Mutex(signer)
        self.nonce = nonce
        stripes = (0..<16).map { _ in Mutexed(Stripe()) }
    }

    /// Signs with another key from now on.
    package func use(_ signer: JWSSigner) {
        self.signer.withLock { $0 = signer }
    }

    /// The compact JWS that carries `content` to clients of `app`.
    ///
    /// - Parameter now: In seconds since 1970.
    package func notification(
        app: String, content: StaleSet, cause: ChangeCause?, now: Int64
    ) throws(SigningError) -> [UInt8] {
        let statement = Statement(app: app, content: content, cause: cause)
        var hasher = Hasher()
        hasher.combine(statement)
        let index = Int(UInt(bitPattern: hasher.finalize()) % UInt(stripes.count))
        let result = stripes[index].withLock { stripe -> Result<[UInt8], SigningError> in
            if let kept = stripe.kept[statement], now - kept.issuedAt < Self.keptSeconds,
                now >= kept.issuedAt
            {
                return .success(kept.bytes)
            }
            do throws(SigningError) {
                let bytes = try sign(statement, now: now)
                if stripe.kept.count >= Self.keptMax {
                    stripe.kept.removeAll(keepingCapacity: true)
                }
                stripe.kept[statement] = (now, bytes)
                return .success(bytes)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    private func sign(_ statement: Statement, now: Int64) throws(SigningError) -> [UInt8] {
        let number = signatures.increment()
        var claims = ReloadNotification(
            issuer: issuer, audience: statement.app, issuedAt: now, expires: now + lifetime,
            id: String(nonce, radix: 36) + "-" + String(number, radix: 36),
            sequence: statement.content.sequence, all: statement.content.all,
            cause: statement.cause)
        for name in statement.content.names {
            switch name.target {
            case .timeline:
                claims.reload.append(.init(kind: name.kind, parameters: name.parameters))
            case .recommendations: claims.recommendations.append(name.kind)
            case .relevance: claims.relevance.append(name.kind)
            case .control: claims.controls.append(name.kind)
            case .activity:
                let id = name.activityID
                claims.activities.append(
                    .init(type: name.kind, id: id, attributes: id == nil ? name.parameters : []))
            }
        }
        return try signer.withLock { $0 }.sign(payload: claims.json.serialized)
    }
}
