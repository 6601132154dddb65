import GatewayPostgres

/// A fleet, simulated: what it writes and reads, what it needs, and what the loss of nodes costs.
struct FleetRun {
    /// The size of the fleet.
    let settings: FleetSettings
    /// The costs.
    let constants: FleetConstants
    /// The log.
    let writing: FleetWriting.Outcome
    /// The partitions of the lost nodes; `nil` if none are lost.
    private(set) var handOver: FleetHandOver?
    /// The clients of the lost nodes; `nil` if none are lost.
    private(set) var reconnect: FleetReconnect?

    /// Simulates a fleet.
    init(_ settings: FleetSettings, constants: FleetConstants = FleetConstants()) {
        (self.settings, self.constants) = (settings, constants)
        var writing = FleetWriting(settings, constants: constants)
        self.writing = writing.run()
        guard settings.lost > 0 else { return }
        // Other numbers than the posts have.
        var chance = FleetChance(seed: ~settings.seed)
        var lost: Set<Int32> = []
        while lost.count < settings.lost {
            lost.insert(Int32(chance.index(below: settings.nodes)))
        }
        handOver = FleetHandOver(
            settings, constants: constants, losing: lost, using: &chance)
        let share = Double(settings.lost) / Double(settings.nodes)
        reconnect = FleetReconnect(
            clients: Int(connected * share), of: connected, nodes: nodesLeft,
            constants: constants, using: &chance)
    }

    /// The clients with a stream.
    private var connected: Double { Double(settings.clients) * constants.connectedShare }
    private var nodesLeft: Int { settings.nodes - settings.lost }
    private var recordRate: Double { Double(writing.records) / writing.seconds }

    // MARK: The database server

    /// CPU of the primary for what is written, in cores.
    var primaryCores: Double {
        writing.batchRate * constants.primaryPerBatch
            + recordRate * (constants.primaryPerChange + constants.probePerSlice * constants.slices)
            + Double(writing.registrations) / writing.seconds * constants.registration
    }

    /// CPU of a server for all readers, in cores.
    var readerCores: Double {
        (Double(writing.queries) * constants.queryBase
            + Double(writing.sent) * constants.queryPerChange) / writing.seconds
    }

    /// CPU of a standby for what is written, in cores.
    var standbyCores: Double {
        writing.batchRate * constants.standbyPerBatch + recordRate * constants.standbyPerChange
    }

    /// CPU that is needed while the lock is held, in cores; never more than one.
    var lockCores: Double {
        writing.batchRate * constants.primaryPerBatch + recordRate * constants.primaryPerChange
    }

    /// Bytes a second that readers are sent.
    var readerBytes: Double {
        let changes = writing.sent - writing.sentRegistrations
        return
            (Double(changes) * constants.changeBytes
            + Double(writing.sentRegistrations) * constants.registrationRecordBytes)
            / writing.seconds
    }

    /// The mean time in which each writer has its turn, seconds.
    var turn: Double {
        guard writing.batches > 0 else { return 0 }
        return writing.lockHeld / Double(writing.batches) * Double(settings.writers)
    }

    /// Bytes on the server's disk.
    var diskBytes: Double {
        constants.changesKept * constants.changeDisk
            + Double(settings.clients) * constants.clientDisk
    }

    // MARK: A node

    /// The keys in the window of versions, which every node has.
    var keys: Double {
        min(
            Double(ClusterSchema.Settings().versionKeys),
            Double(settings.clients) * Double(settings.widgetsPerClient)
                * constants.keysPerWidget)
    }

    /// Bytes of memory of a node that is left: its connected clients, its share of the clients that
    /// are pushed to (all are), and the window.
    var nodeBytes: Double {
        let nodes = Double(nodesLeft)
        return constants.processBytes + constants.requestBytes
            + connected / nodes * (constants.clientBytes + constants.streamBytes)
            + Double(settings.clients) / nodes * constants.clientBytes
            + keys * constants.keyBytes + Double(BatchTags.countMax) * constants.tagBytes
    }

    /// CPU of a node that is left, without posts, in cores.
    var nodeCores: Double {
        let nodes = Double(nodesLeft)
        let deliveries = min(constants.deliveriesPerChange, connected)
        let signatures = min(deliveries, nodes * constants.loops)
        return recordRate * (constants.reading + constants.loops * constants.decision)
            + settings.changes / nodes
            * (signatures * constants.signature + deliveries * constants.delivery)
            + connected / nodes / constants.heartbeat * constants.delivery
    }
}
