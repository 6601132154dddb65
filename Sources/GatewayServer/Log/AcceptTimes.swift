import Synchronization

/// When recent changes were accepted, for the time until a poll tells of them: a bounded number of
/// posts, so that a client which hears of a change of last month is simply not measured.
final class AcceptTimes: Sendable {
    private struct State {
        /// The last sequence of each post and its time in milliseconds since 1970; a ring once it
        /// is full, sequences ascending from `oldest` on.
        var posts: [(last: UInt64, at: Int64)] = []
        var oldest = 0
        /// Nothing is known up to here.
        var floor = UInt64.max
    }

    private let postsMax: Int
    private let state = Mutex(State())

    /// Remembers so many posts.
    init(postsMax: Int = 16_384) {
        self.postsMax = postsMax
    }

    /// Notes when the entries from `first` to `last` were accepted, in milliseconds since 1970.
    /// Sequences only grow.
    func note(_ first: UInt64, through last: UInt64, at time: Int64) {
        state.withLock { state in
            if state.posts.isEmpty { state.floor = first - min(1, first) }
            if state.posts.count < postsMax {
                state.posts.append((last, time))
            } else {
                state.floor = state.posts[state.oldest].last
                state.posts[state.oldest] = (last, time)
                state.oldest = (state.oldest + 1) % postsMax
            }
        }
    }

    /// When the entry at `sequence` was accepted, in milliseconds since 1970; `nil` when that is
    /// not known, or no longer.
    func time(of sequence: UInt64) -> Int64? {
        state.withLock { state in
            guard sequence > state.floor else { return nil }
            var (low, high) = (0, state.posts.count)
            while low < high {
                let middle = (low + high) / 2
                let post = state.posts[(state.oldest + middle) % state.posts.count]
                if post.last < sequence { low = middle + 1 } else { high = middle }
            }
            guard low < state.posts.count else { return nil }
            return state.posts[(state.oldest + low) % state.posts.count].at
        }
    }
}
