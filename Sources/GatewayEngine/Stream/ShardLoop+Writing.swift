import CoreMetrics
import GatewayCore
import GatewayTLS
import Logging
import NIOCore
import WidgetModel

/// Writes the output of the shard to streams.
extension ShardLoop {
    /// Frames for one stream are sent together, in pieces of about this many bytes.
    private static let joinedBytesMax = 64 * 1024

    /// Buffers reused from turn to turn, so that a delivery allocates nothing.
    struct Writing {
        var isPumping = false
        /// Streams that accept bytes again.
        var recovered: [StreamID] = []
        /// Streams that no longer accept anything.
        var gone: [StreamID] = []
        /// The signed frames of the shard's output, by the ids that they carry; 0 for none.
        var frames: [[(id: UInt64, frame: Frame)]] = []
        /// The latest of these, because most streams of a turn get the same one.
        var latest: (place: Int32, id: UInt64, frame: Frame)?
        /// Several frames of one stream.
        var joined: [UInt8] = []
        /// The head of the response that opens a stream, sent with the first frame.
        var preface: [UInt8] = []
        /// Cached, because idle streams mostly have the same position.
        var heartbeat: (watermark: UInt64, frame: Frame)?
    }

    /// Signs the shard's output and writes it, each stream once.
    func pump() {
        guard !writing.isPumping else { return }
        writing.isPumping = true
        repeat {
            for id in writing.recovered where isOpen(id) {
                note(id, isStalled: false)
                shard.recovered(id)
            }
            writing.recovered.removeAll(keepingCapacity: true)
            write()
        } while !writing.recovered.isEmpty
        writing.isPumping = false
    }

    private func write() {
        writing.latest = nil
        writing.frames.removeAll(keepingCapacity: true)
        writing.frames.append(contentsOf: repeatElement([], count: shard.output.frames.count))
        var delivered = 0
        let began = tracing == nil ? 0 : GatewayTracing.now
        for place in 0..<shard.output.touched.count {
            let (id, first) = shard.output.touched[place]
            delivered += write(Int(first), to: id)
        }
        if delivered > 0 {
            metrics.deliveries.increment(by: delivered)
            observeFreshness()
            if let tracing { observeTraces(tracing, since: began) }
        }
        let ended = shard.output.ended
        shard.clearOutput()
        for id in ended { end(id) }
        closeGone()
    }

    /// Writes a stream's frames of this turn; returns their number.
    private func write(_ first: Int, to id: StreamID) -> Int {
        let slot = Int(id.slot)
        guard sessions[slot].id == id else { return 0 }
        let delivery = shard.output.deliveries[first]
        if delivery.next >= 0 || !writing.preface.isEmpty { return writeJoined(first, to: id) }
        guard let frame = frame(delivery) else {
            // Without a signature it cannot be sent, nor its id: the reader reconnects.
            end(id)
            return 0
        }
        settle(send(frame, slot), id, max(sessions[slot].watermark, delivery.id))
        return 1
    }

    private func writeJoined(_ first: Int, to id: StreamID) -> Int {
        let slot = Int(id.slot)
        var watermark = sessions[slot].watermark
        var count = 0
        var place = first
        beginJoining()
        while place >= 0 {
            let delivery = shard.output.deliveries[place]
            guard let frame = frame(delivery) else {
                // The joined bytes may include the head: the end must not precede it.
                if !writing.joined.isEmpty { settle(sendJoined(slot), id, watermark) }
                end(id)
                return count
            }
            join(frame, slot)
            count += 1
            watermark = max(watermark, delivery.id)
            place = Int(delivery.next)
            if writing.joined.count >= Self.joinedBytesMax || place < 0 {
                settle(sendJoined(slot), id, watermark)
                // The catch-up covers the rest.
                guard isOpen(id), details[slot]?.stalledSince == nil else { return count }
            }
        }
        return count
    }

    private func beginJoining() {
        writing.joined.removeAll(keepingCapacity: true)
        writing.joined.append(contentsOf: writing.preface)
        writing.preface = []
    }

    private func join(_ frame: Frame, _ slot: Int) {
        if sessions[slot].stream != nil {
            writing.joined.append(contentsOf: frame.chunk)
        } else {
            writing.joined.append(contentsOf: frame.blocks.readableBytesView)
        }
    }

    private func sendJoined(_ slot: Int) -> SinkResult {
        defer { writing.joined.removeAll(keepingCapacity: true) }
        if let stream = sessions[slot].stream {
            return writing.joined.withUnsafeBytes { result(connections.send($0, to: stream)) }
        }
        return sessions[slot].sink?.send(ByteBuffer(bytes: writing.joined)) ?? .gone
    }

    @inline(__always)
    private func send(_ frame: Frame, _ slot: Int) -> SinkResult {
        if let stream = sessions[slot].stream {
            return frame.chunk.withUnsafeBytes { result(connections.send($0, to: stream)) }
        }
        return sessions[slot].sink?.send(frame.blocks) ?? .gone
    }

    @inline(__always)
    private func result(_ write: StreamWrite) -> SinkResult {
        switch write {
        case .sent: .sent
        case .queued: .full
        case .refused: .gone
        }
    }

    @inline(__always)
    private func settle(_ result: SinkResult, _ id: StreamID, _ watermark: UInt64) {
        if case .sent = result {
            sessions[Int(id.slot)].watermark = watermark
        } else {
            fallBehind(result, id, watermark)
        }
    }

    private func fallBehind(_ result: SinkResult, _ id: StreamID, _ watermark: UInt64) {
        let slot = Int(id.slot)
        // Sending may have ended the stream, as with a long-poll.
        guard sessions[slot].id == id else { return }
        if case .full = result {
            // The accepted bytes are being sent; no more until they are gone.
            sessions[slot].watermark = watermark
            note(id, isStalled: true)
            shard.lagging(id, since: watermark)
        } else {
            shard.lagging(id, since: sessions[slot].watermark)
            if sessions[slot].stream != nil { writing.gone.append(id) }
        }
    }

    /// Closes connections that no longer accept anything, outside the distribution of frames.
    private func closeGone() {
        for id in writing.gone where isOpen(id) {
            if let stream = sessions[Int(id.slot)].stream { connections.close(stream) }
            close(id)
        }
        writing.gone.removeAll(keepingCapacity: true)
    }

    @inline(__always)
    private func frame(_ delivery: ShardOutput.Delivery) -> Frame? {
        if let latest = writing.latest, latest.place == delivery.frame, latest.id == delivery.id {
            return latest.frame
        }
        let known = writing.frames[Int(delivery.frame)].first { $0.id == delivery.id }?.frame
        guard let frame = known ?? sign(delivery) else { return nil }
        writing.latest = (delivery.frame, delivery.id, frame)
        return frame
    }

    private func sign(_ delivery: ShardOutput.Delivery) -> Frame? {
        let content = shard.output.frames[Int(delivery.frame)]
        do {
            let notification = try signer.notification(
                app: content.app, content: content.content, cause: content.cause,
                now: clock.wallSeconds())
            let id = delivery.id > 0 ? cursors.text(delivery.id, in: epoch) : nil
            let frame = Frame(EventStreamEncoder.reload(id: id, notification: notification))
            writing.frames[Int(delivery.frame)].append((delivery.id, frame))
            return frame
        } catch {
            logger.error("cannot sign a notification", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private func observeFreshness() {
        let wall = clock.wallMilliseconds()
        for frame in shard.output.frames where frame.acceptedAt > 0 {
            metrics.freshnessSent[.stream]?.record(
                Double(max(0, wall - frame.acceptedAt)) / 1000, kind: frame.content.kindLabel)
        }
    }

    /// Sends an idle stream its position.
    func sendHeartbeat(_ id: StreamID) {
        guard let watermark = shard.heartbeat(id) else { return }
        let frame: Frame
        if let known = writing.heartbeat, known.watermark == watermark {
            frame = known.frame
        } else {
            frame = Frame(EventStreamEncoder.heartbeat(id: cursors.text(watermark, in: epoch)))
            writing.heartbeat = (watermark, frame)
        }
        beginJoining()
        join(frame, Int(id.slot))
        settle(sendJoined(Int(id.slot)), id, watermark)
        if !writing.isPumping { closeGone() }
    }
}
