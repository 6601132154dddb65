import CPrefetch

extension Array {
    /// Asks for the memory of the element at `index`, which may lie outside, without waiting for
    /// it: loads that need nothing of each other are asked for first and used together.
    @inline(__always)
    func prefetch(_ index: Int) {
        withUnsafeBufferPointer { elements in
            // Sound: the address is reckoned without arithmetic on the pointer, and nothing is
            // read from it.
            let start = UInt(bitPattern: elements.baseAddress)
            let offset = UInt(bitPattern: index) &* UInt(bitPattern: MemoryLayout<Element>.stride)
            gateway_prefetch(UnsafeRawPointer(bitPattern: start &+ offset))
        }
    }
}
