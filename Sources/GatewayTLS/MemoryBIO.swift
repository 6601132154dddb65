import COpenSSL
import NIOCore
import NIOPosix

/// The in-memory transport that all connections of one thread share: OpenSSL reads from and writes
/// to it while it works for one of them.
///
/// OpenSSL sees one `BIO` that never blocks: a read consumes the ciphertext lent by `begin`, a
/// write appends to `output`. OpenSSL keeps an incomplete record in its own buffer for the
/// connection, so an idle connection costs no buffer of ours. One rule makes sharing safe: every
/// use starts with `begin` on an empty wire and ends with `finish`, whatever happened in between,
/// and no code but OpenSSL runs meanwhile. Otherwise one connection's alert would leave on
/// another's socket.
final class MemoryBIO {
    /// The state that the C callbacks use: plain memory, without reference counting.
    struct State {
        var input: UnsafeRawPointer?
        var inputCount = 0
        var output: UnsafeMutableRawPointer
        var outputCount = 0
        var outputCapacity: Int
        /// The units that the connection may still spend; see `charge`.
        var units = InputBudget.unlimited
        /// Whether the connection has spent too much, so that the rest of its input was refused.
        var isRefused = false
    }

    /// The output memory kept between uses, in bytes: four full records.
    static let outputKeptBytesMax = 4 * 17 * 1024
    /// The most content in one record, in bytes (RFC 8446 section 5.1).
    static let recordContentBytesMax = 16 * 1024

    private let state: UnsafeMutablePointer<State>
    // Sound: allocated for the life of this object; the BIO forgets it in `deinit`, before it goes.
    /// Memory for one record's plaintext: records are decrypted into it. Valid until the next call
    /// into OpenSSL.
    let scratch: UnsafeMutableRawBufferPointer
    // Sound: allocated for the life of this object, whole, and used between two calls only.
    /// Shared by all `SSL` objects of the thread, each holding a reference.
    let bio: OpaquePointer
    /// Derives the keys of connections that leave OpenSSL; without it they stay with OpenSSL.
    let expander = HKDFExpander()

    /// The wire of the calling thread; `nil` when OpenSSL has no memory for one.
    static func ofThread() -> MemoryBIO? {
        if let known = ofThreads.currentValue { return known }
        guard let made = MemoryBIO() else { return nil }
        ofThreads.currentValue = made
        return made
    }

    private nonisolated(unsafe) static let ofThreads = ThreadSpecificVariable<MemoryBIO>()
    // Sound: the variable holds one value per thread and hands each thread its own only.

    private init?() {
        guard let method = Self.method, let bio = BIO_new(method.pointer) else { return nil }
        self.bio = bio
        let capacity = Self.outputKeptBytesMax
        state = .allocate(capacity: 1)
        state.initialize(
            to: State(
                output: .allocate(byteCount: capacity, alignment: 16), outputCapacity: capacity))
        scratch = .allocate(byteCount: Self.recordContentBytesMax, alignment: 16)
        BIO_set_data(bio, state)
        BIO_set_init(bio, 1)
    }

    deinit {
        BIO_set_data(bio, nil)
        BIO_free(bio)
        state.pointee.output.deallocate()
        state.deallocate()
        scratch.deallocate()
    }

    /// True between uses.
    var isEmpty: Bool {
        state.pointee.input == nil && state.pointee.inputCount == 0
            && state.pointee.outputCount == 0
    }

    /// Lends the wire to one connection, with the ciphertext it received.
    ///
    /// `input` must stay valid until `finish`. `units` limits what the connection may spend, as
    /// `charge` says; by default it is not limited.
    @inline(__always)
    func begin(
        input: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        units: Int = InputBudget.unlimited
    ) {
        assert(isEmpty, "the shared wire is lent twice")
        state.pointee.input = input.baseAddress
        state.pointee.inputCount = input.count
        state.pointee.outputCount = 0
        state.pointee.units = units
        state.pointee.isRefused = false
    }

    /// Takes the wire back and discards what is left in it.
    @inline(__always)
    func finish() {
        state.pointee.input = nil
        state.pointee.inputCount = 0
        state.pointee.outputCount = 0
        if state.pointee.outputCapacity > Self.outputKeptBytesMax { shrink() }
    }

    /// The bytes written since `begin`; valid until the next call into OpenSSL or `finish`.
    @inline(__always)
    var output: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: state.pointee.output, count: state.pointee.outputCount)
    }

    /// Returns memory behind the output for a record that is made without an OpenSSL connection;
    /// `wrote` makes it part of the output.
    @inline(__always)
    func room(for count: Int) -> UnsafeMutablePointer<UInt8> {
        let needed = state.pointee.outputCount + count
        if needed > state.pointee.outputCapacity { Self.grow(state, to: needed) }
        return (state.pointee.output + state.pointee.outputCount)
            .assumingMemoryBound(to: UInt8.self)
    }

    /// Adds the bytes written to `room` to the output.
    @inline(__always)
    func wrote(_ count: Int) { state.pointee.outputCount += count }

    /// The number of bytes of ciphertext lent and not read yet.
    var inputLeft: Int { state.pointee.inputCount }

    /// The units that the connection may still spend.
    var unitsLeft: Int { state.pointee.units }
    /// Whether the connection has spent too much, so that the rest of its input was refused.
    var isRefused: Bool { state.pointee.isRefused }

    /// Gives units back for a record with content: as much again as the record cost.
    @inline(__always)
    func creditContent() {
        state.pointee.units += 2 * InputBudget.recordCost
        if state.pointee.units < 0 { Self.refuseInput(state) }
    }

    /// Moves the output to the end of `buffer`.
    func moveOutput(to buffer: inout ByteBuffer) {
        buffer.writeBytes(output)
        state.pointee.outputCount = 0
    }

    /// Returns the output in a new buffer; `nil` if it is empty.
    func takeOutput(_ allocator: ByteBufferAllocator) -> ByteBuffer? {
        guard state.pointee.outputCount > 0 else { return nil }
        var buffer = allocator.buffer(capacity: state.pointee.outputCount)
        moveOutput(to: &buffer)
        return buffer
    }

    // Out of line: it is rare, and `finish` is inlined into the hot path.
    @inline(never)
    private func shrink() {
        state.pointee.output.deallocate()
        state.pointee.outputCapacity = Self.outputKeptBytesMax
        state.pointee.output = .allocate(byteCount: Self.outputKeptBytesMax, alignment: 16)
    }
}

/// The charge for a connection's records: the same for each record, 16 times as much for a key
/// update.
///
/// A record with content gives back twice what a record costs, however small or padded it is. Only
/// a peer that sends many records without content runs out of units.
extension MemoryBIO {
    /// Charges the connection that uses the wire for a part of a record, as OpenSSL reports it to a
    /// message callback.
    static func charge(_ ssl: OpaquePointer, for type: Int32) {
        guard let state = state(of: SSL_get_rbio(ssl)) else { return }
        switch type {
        case SSL3_RT_HEADER:
            // The record's body is read next, so this is not the place to refuse input.
            state.pointee.units -= InputBudget.recordCost
        case SSL3_RT_HANDSHAKE:
            // After its handshake a client sends no other message than key updates.
            state.pointee.units -= InputBudget.keyUpdateCost
            if state.pointee.units < 0 { refuseInput(state) }
        default:
            break
        }
    }

    /// Replaces the rest of the input by the header of a record that OpenSSL answers with a fatal
    /// alert: it sends none for what we find. Called between two records only.
    private static func refuseInput(_ state: UnsafeMutablePointer<State>) {
        state.pointee.isRefused = true
        state.pointee.input = UnsafeRawPointer(refusedHeader.utf8Start)
        state.pointee.inputCount = refusedHeader.utf8CodeUnitCount
    }

    /// A record of no known type, which is an `unexpected_message` in TLS 1.3; and longer than any
    /// record, which is a `record_overflow` in TLS 1.2.
    private static let refusedHeader: StaticString = "\u{0}\u{3}\u{3}\u{7F}\u{7F}"

    // Sound: written once before it is published, OpenSSL only reads it afterwards.
    struct Method: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    /// The one table of callbacks, made at first use and kept for the life of the process.
    fileprivate static let method: Method? = {
        let kind = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = BIO_meth_new(kind, "event loop wire") else { return nil }
        BIO_meth_set_read(method) { bio, target, count in
            BIO_clear_flags(bio, MemoryBIO.retryFlags)
            guard let target, count > 0, let state = MemoryBIO.state(of: bio) else { return 0 }
            guard let input = state.pointee.input, state.pointee.inputCount > 0 else {
                BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
                return -1
            }
            let taken = min(Int(count), state.pointee.inputCount)
            UnsafeMutableRawPointer(target).copyMemory(from: input, byteCount: taken)
            state.pointee.input = input + taken
            state.pointee.inputCount -= taken
            return Int32(taken)
        }
        BIO_meth_set_write(method) { bio, source, count in
            BIO_clear_flags(bio, MemoryBIO.retryFlags)
            guard let source, count > 0, let state = MemoryBIO.state(of: bio) else { return 0 }
            let needed = state.pointee.outputCount + Int(count)
            if needed > state.pointee.outputCapacity { MemoryBIO.grow(state, to: needed) }
            (state.pointee.output + state.pointee.outputCount)
                .copyMemory(from: source, byteCount: Int(count))
            state.pointee.outputCount = needed
            return count
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_PENDING: MemoryBIO.state(of: bio)?.pointee.inputCount ?? 0
            default: 0
            }
        }
        return Method(pointer: method)
    }()

    private static var retryFlags: Int32 {
        BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY
    }

    @inline(__always)
    private static func state(of bio: OpaquePointer?) -> UnsafeMutablePointer<State>? {
        BIO_get_data(bio)?.assumingMemoryBound(to: State.self)
    }

    /// Enlarges the output. Rare: one use wrote more than four records. Bounded by what its caller
    /// seals at once.
    private static func grow(_ state: UnsafeMutablePointer<State>, to needed: Int) {
        let capacity = max(needed, 2 * state.pointee.outputCapacity)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
        larger.copyMemory(from: state.pointee.output, byteCount: state.pointee.outputCount)
        state.pointee.output.deallocate()
        state.pointee.output = larger
        state.pointee.outputCapacity = capacity
    }
}
