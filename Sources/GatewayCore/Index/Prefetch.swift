import CPrefetch

extension Array {
    /// Prefetches the memory of the element at `index`, which may be out of bounds, without
    /// waiting: independent loads are started first and used together.
    @inline(__always)
    func prefetch(_ index: Int) {
        withUnsafeBufferPointer { elements in
            // Sound: the address is computed without pointer arithmetic, and nothing is read from
            // it.
            let start = UInt(bitPattern: elements.baseAddress)
            let offset = UInt(bitPattern: index) &* UInt(bitPattern: MemoryLayout<Element>.stride)
            gateway_prefetch(UnsafeRawPointer(bitPattern: start &+ offset))
        }
    }
}
