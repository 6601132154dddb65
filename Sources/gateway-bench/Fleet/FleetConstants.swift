/// The costs that a simulated fleet is made of: measured ones, with their source, and the sizes of
/// the machines that are assumed.
///
/// "Measured for the log" means the measurements of the log of several nodes: PostgreSQL 15, two
/// cores, a standby in the quorum 2 ms away.
struct FleetConstants {
    // MARK: A batch

    /// The time of a batch in the lock apart from the following three, seconds. Measured for the log.
    var batchBase = 1.3e-3
    /// The additional time in the lock for each change, seconds. Measured for the log.
    var batchPerChange = 8e-6
    /// The time to flush the write-ahead log, seconds. Measured for the log: 0.1 to 0.2 ms.
    var flush = 0.15e-3
    /// The round trip to the standby of the quorum, seconds. A setting of those measurements.
    var quorumRoundTrip = 2e-3
    /// The largest deviation of a batch's time. Measured for the log: 3.4 to 4.2 ms around 3.8 ms.
    var batchDeviation = 0.105
    /// A round trip between a node and the primary, seconds. Measured for the log: a look-up.
    var roundTrip = 0.07e-3
    /// The maximum wait of an append for the lock, seconds. A setting of the schema.
    var lockTimeout = 1.0

    // MARK: The database server

    /// CPU of the primary for each batch, seconds. Measured for the log.
    var primaryPerBatch = 200e-6
    /// CPU of the primary for each change, seconds. Measured for the log: 5 to 8 µs.
    var primaryPerChange = 8e-6
    /// CPU of the primary to look for a change's event in one slice, seconds. Measured for the log:
    /// 1.5 to 2 µs.
    var probePerSlice = 2e-6
    /// The slices of the log. A setting of the schema.
    var slices = 12.0
    /// CPU of a standby for each batch, seconds. Measured for the log.
    var standbyPerBatch = 130e-6
    /// CPU of a standby for each change, seconds. Measured for the log: 3 to 4 µs.
    var standbyPerChange = 4e-6
    /// CPU of the server for a reader's query, seconds. Measured for the log.
    var queryBase = 60e-6
    /// CPU of the server for each change that a reader is sent, seconds. Measured for the log.
    var queryPerChange = 0.4e-6
    /// CPU of the server for a registration that is written, seconds. Measured for the log: 65 to
    /// 150 µs.
    var registration = 80e-6
    /// The additional time of an append for each registration, before the lock, seconds. Measured for
    /// the log: 20 in an append cost 62 µs each.
    var registrationInAppend = 62e-6
    /// Bytes of write-ahead log for a registration. Measured for the log, after a checkpoint.
    var registrationWAL = 15_000.0
    /// CPU of the server to look a client up when it connects, seconds. Measured for the log.
    var clientLookUp = 50e-6
    /// The time to load a client of a partition that is taken over, seconds. Measured for the log: 250
    /// clients in 2.7 ms.
    var loadPerClient = 2.7e-3 / 250
    /// Bytes of a change as a reader is sent it. Measured for the log: 222 bytes in the log.
    var changeBytes = 220.0
    /// Bytes of a registration's record in the log. Measured for the log.
    var registrationRecordBytes = 60.0

    // MARK: Disk

    /// Bytes of a change on disk, in the log and as event. Measured for the log.
    var changeDisk = 322.0
    /// Bytes of a registered client on disk that is pushed to: 1.3 kB, and 0.33 kB of push state.
    /// Measured for the log.
    var clientDisk = 1_630.0
    /// The changes that the log keeps. Assumed.
    var changesKept = 50_000_000.0

    // MARK: Leases

    /// The time that a lease runs after a renewal, seconds. A setting of the schema.
    var lease = 10.0

    // MARK: A node, all but the last two measured by `gateway-bench`: see Deploy/capacity.md

    /// CPU to decide a change, for each event loop, seconds: c, at 1,000,000 widgets.
    var decision = 1.4e-6
    /// CPU of the node to read a change from the log, seconds. Measured for the log.
    var reading = 0.4e-6
    /// CPU of a signature, seconds: n.
    var signature = 45e-6
    /// CPU of a delivery, seconds: d.
    var delivery = 8.5e-6
    /// The streams that a change is delivered to. Of the benchmark's change.
    var deliveriesPerChange = 8.0
    /// The time between two heartbeats of an idle stream, seconds. The default.
    var heartbeat = 15.0
    /// CPU to open a stream, seconds: o.
    var opening = 0.65e-3
    /// Bytes of a process without clients.
    var processBytes = 60e6
    /// Bytes of a registered client in memory: M.
    var clientBytes = 1_800.0
    /// Bytes of an open stream and of the kernel's part of it: S + K.
    var streamBytes = 6_900.0
    /// Bytes of a key version: W.
    var keyBytes = 20.0
    /// The keys that a widget depends on: 8 for a client with 4 widgets.
    var keysPerWidget = 2.0
    /// Bytes of a batch's tag, which shows whether a cursor is of this log.
    var tagBytes = 12.0
    /// Bytes of request bodies in work, and the copies of each: 64 MiB, 2.5.
    var requestBytes = 2.5 * 64 * 1_048_576
    /// Event loops of a node, one for each core. Assumed.
    var loops = 8.0
    /// Bytes of a node's memory. Assumed: the machine of a million streams.
    var nodeMemory = 16e9

    // MARK: Clients

    /// The part of the clients that is connected at one time. Assumed.
    var connectedShare = 1.0 / 3
    /// The registrations of each client a second that change something: one a day. Assumed.
    var registrationsPerClient = 1.0 / 86_400
    /// The largest deviation of the time that clients are given to return.
    var returnDeviation = 0.2

    // MARK: Limits

    /// Bytes a second that a primary should send to its readers: above, standbys should.
    var readerBytesMax = 60e6
    /// CPU in the lock, in cores: 85,000 changes a second in batches of 1,000.
    var lockCPUMax = 0.7
    /// The part of the lock's timeout that a turn of all writers may take.
    var turnShareMax = 0.25
    /// The part of a node's cores that may be used while nothing special happens.
    var nodeCPUShareMax = 0.5

    /// The measured costs.
    init() {}

    /// Returns the time of a batch in the lock, in seconds.
    func batchTime(changes: Int) -> Double {
        batchBase + batchPerChange * Double(changes) + flush + quorumRoundTrip
    }

    /// The streams that a node opens a second: half of what its cores can.
    var admission: Double { loops / (2 * opening) }
}

/// The size of a simulated fleet.
struct FleetSettings {
    /// The order in which writers that wait for the lock get it.
    enum Grant: String, CaseIterable {
        /// The order in which they came.
        case fifo
        /// Any of them, by chance.
        case random
    }

    /// The nodes; all of them read.
    var nodes = 3
    /// The nodes that backends post to.
    var writers = 3
    /// The changes a second, of all backends.
    var changes = 10_000.0
    /// The registered clients.
    var clients = 0
    /// The widgets of each client.
    var widgetsPerClient = 4
    /// The nodes that are lost at once.
    var lost = 0
    /// The order of writers.
    var grant = Grant.fifo
    /// The duration of the simulated posts, seconds.
    var seconds = 20.0
    /// The seed of all that happens by chance.
    var seed: UInt64 = 1
}
