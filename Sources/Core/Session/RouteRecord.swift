/// One route to a peer.
struct RouteRecord: Equatable {
    let transport: Int
    let address: TransportAddress
    var quality: Double?
    /// Whether the program gave the address, not discovery. Such a route is kept as long as the conversation that it
    /// led to.
    var isManual = false
    /// The address at which the peer proved itself when this route was last dialled: the route's own, or that of a
    /// place behind it.
    var provenAt: TransportAddress?
}
