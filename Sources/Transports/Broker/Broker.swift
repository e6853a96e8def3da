import NighCore

/// The client of a message broker, such as NATS: it publishes packets under subjects, and receives the packets of the
/// subjects that it subscribes to.
///
/// Packets of one publisher under one subject arrive in the order in which they were published, or not at all: a broker
/// loses packets when a connection to it breaks. Of packets that come at once for several subscriptions, those of the
/// earliest subscription are delivered first.
///
/// ## The contract, for every member
/// - `start` is called first and once, `shutdown` last and once.
/// - All calls come on the loop. The client calls its `events` on the loop too, and never from inside a call.
/// - No call blocks. Slow work is done on other threads, and its outcome is reported as an event.
/// - After `shutdown` returns, no event comes any more.
package protocol Broker: AnyObject, Sendable {
    /// Connects, and connects again whenever the connection breaks, until `shutdown`.
    func start(on loop: any EventLoop, events: any BrokerEvents)

    /// Subscribes to `subject`, in which the last token may be a wildcard for one token (`*`) or for all that follow
    /// (`>`), for the current connection only. Ignored while there is no connection.
    func subscribe(to subject: String)

    /// Ends the subscription to `subject`. Packets that are already under way may still come.
    func unsubscribe(from subject: String)

    /// Publishes `packet`, at most as long as ``BrokerLimits/longestPacket``, under `subject`. It takes every packet
    /// and holds those that cannot leave at once, so the caller watches ``bytesWaiting``. Ignored while there is no
    /// connection.
    ///
    /// - Parameter answers: a subject under which this client expects answers. The broker answers there itself, with
    ///   ``BrokerEvents/brokerFoundNobody(answeringTo:)``, if nobody subscribes to `subject`.
    func publish(_ packet: [UInt8], to subject: String, answers: String?)

    /// Reports to the events, by ``BrokerEvents/brokerHasReceived(mark:)``, that the broker has received all that was
    /// published before this call. Ignored while there is no connection.
    func mark(_ number: UInt64)

    /// The bytes that were published and wait in this process.
    var bytesWaiting: Int { get }

    /// Returns the present diagnosis of this client, in the order in which things can break.
    func diagnose() -> [Diagnosis]

    /// Ends the connection, and calls nothing back afterwards. Does not wait: messages published before still leave on
    /// other threads, for a second at most.
    func shutdown()
}

/// Receives the events of a ``Broker``. All calls come on the loop.
package protocol BrokerEvents: AnyObject {
    /// Reports a new connection, which has no subscriptions yet. The broker may be another server than before.
    func brokerConnected(_ limits: BrokerLimits)
    /// Reports that there is no connection: none could be made, or the last one broke. The client goes on trying.
    /// Packets that waited are dropped.
    func brokerDisconnected(_ error: NighError)
    /// Delivers a packet that was published under `subject`.
    ///
    /// - Parameter answers: the subject under which its publisher expects answers.
    func brokerReceived(_ packet: ByteSlice, under subject: String, answers: String?)
    /// Reports that nobody subscribed to the subject of a packet that was published with these `answers`.
    func brokerFoundNobody(answeringTo answers: String)
    /// Reports that ``Broker/bytesWaiting`` has fallen to half of ``BrokerLimits/queue`` or less, after it had reached
    /// that limit.
    func brokerHasRoom()
    /// Reports that the broker has received all that was published before the call of ``Broker/mark(_:)``.
    func brokerHasReceived(mark: UInt64)
    /// Reports a failure after which the connection goes on: a subject that the broker does not let this client use, a
    /// packet that is too long, packets that were dropped.
    func brokerFailed(_ error: NighError)
}

extension BrokerEvents {
    /// Ignores the failure.
    package func brokerFailed(_ error: NighError) {}
}

/// The limits of a connection.
package struct BrokerLimits: Hashable, Sendable {
    /// The length of the longest packet that the server takes.
    package var longestPacket: Int
    /// How many bytes may wait in this process before the caller should pause: enough to keep the connection busy, and
    /// few enough that a small packet does not wait long behind them.
    package var queue: Int

    package init(longestPacket: Int, queue: Int) {
        self.longestPacket = longestPacket
        self.queue = queue
    }
}
