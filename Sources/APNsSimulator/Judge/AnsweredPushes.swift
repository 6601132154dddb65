/// What was answered to which push, by `apns-id`. The oldest are forgotten.
struct AnsweredPushes: Sendable {
    /// What is known of a push.
    struct Standing: Sendable, Hashable {
        /// Whether it was taken, answered or not.
        var isTaken = false
        /// The last status it was told; 0 for none.
        private var status = 0
        /// Why it must not be sent again.
        private(set) var refusal: APNsReason?
        /// The connection by which it was told.
        private(set) var connection = 0

        /// Whether that was the last status it was told.
        func wasTold(_ status: Int) -> Bool { self.status == status }

        /// It was told something.
        mutating func note(_ answer: PushAnswer, on connection: Int) {
            status = answer.status
            let reason = answer.documentedReason
            refusal = reason?.allowsRepeat == false ? reason : nil
            self.connection = connection
        }
    }

    private let capacity: Int
    private var young: [PushID: Standing] = [:]
    private var old: [PushID: Standing] = [:]
    /// Connections whose last answers may not have arrived.
    var lost: Set<Int> = []

    /// Remembers at least `capacity` pushes, and at most twice as many.
    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    subscript(_ id: PushID) -> Standing {
        get { young[id] ?? old[id] ?? Standing() }
        set {
            if young.count >= capacity, young[id] == nil {
                old = young
                young = [:]
            }
            young[id] = newValue
        }
    }
}
