import COpenSSL
import Glibc

/// Listens to OpenSSL's key schedule (RFC 8446 section 7.1) for the secrets of the connection that a
/// thread is working for.
///
/// OpenSSL has no call that tells a connection's traffic secrets, and its key log prints five lines
/// of hex for each handshake, which is a twelfth of the handshake's cost. The schedule itself is
/// computed by a provider's TLS13-KDF that a context chooses by its property query: ours is that of
/// the provider in force, function for function, but that it computes by a shorter way
/// (`SecretSchedule`) and looks at what it has derived (provider-kdf(7)). Where it is not chosen,
/// as under a policy that wants other properties, nothing is heard and streams keep OpenSSL's
/// object.
enum KeySchedule {
    /// The property query for contexts whose handshakes are to be heard; `nil` when OpenSSL does not
    /// take the provider.
    static let propertyQuery: String? = isInstalled ? "?provider=\(name)" : nil

    private static let name = "keyschedule"
    private typealias Derive =
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?, Int, UnsafePointer<OSSL_PARAM>?
        ) -> Int32
    private typealias Query =
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<Int32>?
        ) -> UnsafePointer<OSSL_ALGORITHM>?

    /// The provider in force and its key derivation.
    // Sound: all pointers are of memory that is written before it is published and kept for the life
    // of the process; OpenSSL's provider is kept by the fetched algorithm, which is never freed.
    private struct Original: @unchecked Sendable {
        let provider: OpaquePointer
        let derive: Derive
        /// Our table: the original's with `derive` replaced.
        let functions: UnsafePointer<OSSL_DISPATCH>
    }

    // Sound: as above.
    private struct Tables: @unchecked Sendable {
        let algorithms: UnsafePointer<OSSL_ALGORITHM>
        let provider: UnsafePointer<OSSL_DISPATCH>
    }

    private static let original: Original? = {
        guard let kdf = EVP_KDF_fetch(nil, "TLS13-KDF", nil),
            let provider = EVP_KDF_get0_provider(kdf)
        else { return nil }
        var isUncached: Int32 = 0
        var algorithm = OSSL_PROVIDER_query_operation(provider, OSSL_OP_KDF, &isUncached)
        while let one = algorithm, let names = one.pointee.algorithm_names {
            if strncmp(names, "TLS13-KDF", 9) == 0, let functions = one.pointee.implementation {
                return copy(functions, of: provider)
            }
            algorithm = one + 1
        }
        return nil
    }()

    private static func copy(
        _ functions: UnsafePointer<OSSL_DISPATCH>, of provider: OpaquePointer
    ) -> Original? {
        var copies: [OSSL_DISPATCH] = []
        var derive: Derive?
        var function = functions
        while function.pointee.function_id != 0 {
            var copy = function.pointee
            if copy.function_id == OSSL_FUNC_KDF_DERIVE {
                derive = copy.function.map { unsafeBitCast($0, to: Derive.self) }
                copy.function = erased(listeningDerive)
            }
            copies.append(copy)
            function += 1
        }
        guard let derive else { return nil }
        return Original(provider: provider, derive: derive, functions: kept(copies))
    }

    /// OpenSSL's dispatch tables hold functions of all types as one.
    // Sound: OpenSSL calls each by the type that belongs to its number (openssl-core_dispatch.h(7)).
    private static func erased<Function>(_ function: Function) -> (@convention(c) () -> Void)? {
        unsafeBitCast(function, to: (@convention(c) () -> Void).self)
    }

    /// For the life of the process, with an entry of zeros behind.
    private static func kept(_ functions: [OSSL_DISPATCH]) -> UnsafePointer<OSSL_DISPATCH> {
        let place = UnsafeMutablePointer<OSSL_DISPATCH>.allocate(capacity: functions.count + 1)
        for (index, function) in (functions + [OSSL_DISPATCH()]).enumerated() {
            (place + index).initialize(to: function)
        }
        return UnsafePointer(place)
    }

    private static let tables: Tables? = original.map { original in
        let algorithms = UnsafeMutablePointer<OSSL_ALGORITHM>.allocate(capacity: 2)
        algorithms.initialize(
            to: OSSL_ALGORITHM(
                algorithm_names: strdup("TLS13-KDF"),
                property_definition: strdup("provider=\(name)"),
                implementation: original.functions, algorithm_description: nil))
        (algorithms + 1).initialize(to: OSSL_ALGORITHM())
        let query: Query = { _, operation, isUncached in
            isUncached?.pointee = 0
            return operation == OSSL_OP_KDF ? KeySchedule.tables?.algorithms : nil
        }
        return Tables(
            algorithms: UnsafePointer(algorithms),
            provider: kept([
                OSSL_DISPATCH(
                    function_id: OSSL_FUNC_PROVIDER_QUERY_OPERATION, function: erased(query))
            ]))
    }

    private static let isInstalled: Bool = {
        guard tables != nil else { return false }
        let isAdded = OSSL_PROVIDER_add_builtin(nil, name) { _, _, functions, context in
            guard let original = KeySchedule.original, let tables = KeySchedule.tables else {
                return 0
            }
            functions?.pointee = tables.provider
            // Its functions are called with what they are used to.
            context?.pointee = OSSL_PROVIDER_get0_provider_ctx(original.provider)
            return 1
        }
        // What the system's configuration has in force stays so.
        let retainFallbacks: Int32 = 1
        return isAdded == 1 && OSSL_PROVIDER_try_load(nil, name, retainFallbacks) != nil
    }()

    private static let listeningDerive: Derive = { context, output, count, parameters in
        guard let original = KeySchedule.original else { return 0 }
        guard let output else { return original.derive(context, nil, count, parameters) }
        let wire = TLSWire.currentOfThread
        let step = parameters.flatMap { SecretSchedule.Step($0) }
        // Sound: OpenSSL's for the time of the call, and as long as it says.
        let result = UnsafeMutableRawBufferPointer(start: output, count: count)
        let isMade = step.map { wire?.schedule?.take($0, to: result) ?? false } ?? false
        guard isMade || original.derive(context, output, count, parameters) == 1 else { return 0 }
        if let derivation = step.flatMap({ Derivation($0) }), let secrets = wire?.listener {
            secrets.pointee.take(derivation, UnsafeRawBufferPointer(result))
        }
        return 1
    }
}
