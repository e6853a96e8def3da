/// One way to a peer.
struct RouteRecord: Equatable {
    let transport: Int
    let address: TransportAddress
    var quality: Double?
    /// Given by hand, not seen by discovery; kept as long as the conversation it led to.
    var isManual = false
    /// Where the peer proved itself when it was dialled along this route last: the route's address, or a place behind it.
    var provenAt: TransportAddress?
}
