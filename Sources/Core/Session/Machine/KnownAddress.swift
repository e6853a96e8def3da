/// An address at which a peer may answer. Loop only.
final class KnownAddress {
    let number: UInt64
    let address: TransportAddress
    let transport: Int
    /// The search under way, until the hellos are exchanged.
    var race: DialRace?
    /// When to dial next; `.never` while a search is under way.
    var dueAt = Moment.never
    /// How long to wait after the next failure.
    var pause: Duration
    /// The reason why no peer answered, as last reported to the program; nil once a peer has answered.
    var reportedCause: NighError.Cause?

    init(number: UInt64, address: TransportAddress, transport: Int, pause: Duration) {
        self.number = number
        self.address = address
        self.transport = transport
        self.pause = pause
    }
}
