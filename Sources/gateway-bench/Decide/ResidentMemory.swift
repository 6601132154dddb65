#if canImport(Glibc)
    import Glibc
#endif

/// The memory of this process that is really there, as the kernel counts it.
enum ResidentMemory {
    /// Bytes resident; 0 on systems without `/proc`.
    static var bytes: Int {
        #if canImport(Glibc)
            guard let file = fopen("/proc/self/statm", "r") else { return 0 }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 128)
            guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
            let fields = String(
                decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self
            ).split(separator: " ")
            let pages = fields.count > 1 ? Int(fields[1]) ?? 0 : 0
            return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
        #else
            return 0
        #endif
    }
}
