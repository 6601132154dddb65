/// Is told what happens to one request, on the client's thread, where the other requests wait.
package protocol TransferReceiver: AnyObject, Sendable {
    /// The head of the response is here.
    func received(_ head: CurlHead)

    /// A piece of the response's body is here, until this returns.
    ///
    /// - Returns: How many bytes are accepted. Fewer than there are end the request; `nil` pauses
    ///   it until the client resumes it with the same piece.
    func received(_ piece: UnsafeRawBufferPointer) -> Int?

    /// The request has ended. Called exactly once, and last.
    ///
    /// - Parameters:
    ///   - head: The head of the response if its status arrived and the client did not give it up.
    ///   - failure: Why there is no response, or not all of it.
    func ended(_ head: CurlHead?, _ failure: CurlError?)
}

/// One request of a client, from being asked for to its end.
package final class CurlCall: Sendable {
    let request: CurlRequest
    let receiver: any TransferReceiver

    init(_ request: CurlRequest, _ receiver: any TransferReceiver) {
        self.request = request
        self.receiver = receiver
    }
}
