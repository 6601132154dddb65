/// The responses to recent pushes, by `apns-id`. The oldest are removed.
struct AnsweredPushes: Sendable {
    /// The state of a push.
    struct Status: Sendable, Hashable {
        /// Whether the push was accepted, with or without a response.
        var isTaken = false
        /// The last status in a response; 0 for none.
        private var status = 0
        /// The reason why it must not be sent again.
        private(set) var refusal: APNsReason?
        /// The connection of the last response.
        private(set) var connection = 0

        /// Returns whether this was the status of the last response.
        func wasTold(_ status: Int) -> Bool { self.status == status }

        /// Records a response.
        mutating func note(_ answer: PushAnswer, on connection: Int) {
            status = answer.status
            let reason = answer.documentedReason
            refusal = reason?.allowsRepeat == false ? reason : nil
            self.connection = connection
        }
    }

    private let capacity: Int
    private var young: [PushID: Status] = [:]
    private var old: [PushID: Status] = [:]
    /// The connections whose last responses may not have arrived.
    var lost: Set<Int> = []

    /// Creates an instance that stores at least `capacity` pushes, and at most twice as many.
    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    subscript(_ id: PushID) -> Status {
        get { young[id] ?? old[id] ?? Status() }
        set {
            if young.count >= capacity, young[id] == nil {
                old = young
                young = [:]
            }
            young[id] = newValue
        }
    }
}
