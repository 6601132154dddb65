/// Receives the events of one request on the client's thread, while all other requests wait.
package protocol TransferReceiver: AnyObject, Sendable {
    func received(_ head: CurlHead)

    /// Receives a piece of the response's body, which is valid until this returns.
    ///
    /// - Returns: The number of bytes accepted. Accepting fewer than there are ends the request;
    ///   `nil` pauses it until the client resumes it with the same piece.
    func received(_ piece: UnsafeRawBufferPointer) -> Int?

    /// Reports the end of the request. Called exactly once, and last.
    ///
    /// - Parameters:
    ///   - head: The head of the response if its status arrived; `nil` if the client ended the
    ///     request.
    ///   - failure: The reason why the response is missing or incomplete.
    func ended(_ head: CurlHead?, _ failure: CurlError?)
}

/// One request of a client, from its creation to its end.
package final class CurlCall: Sendable {
    let request: CurlRequest
    let receiver: any TransferReceiver

    init(_ request: CurlRequest, _ receiver: any TransferReceiver) {
        self.request = request
        self.receiver = receiver
    }
}
