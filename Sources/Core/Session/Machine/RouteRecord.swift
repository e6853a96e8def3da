/// One route to a peer.
struct RouteRecord: Equatable {
    let transport: Int
    let address: TransportAddress
    var quality: Double?
    enum Source {
        /// Discovery saw the peer there.
        case discovery
        /// The program gave the address. Such a route is kept as long as the conversation that it led to.
        case program
        /// Another peer gave the address.
        case introduction
    }

    var source = Source.discovery
    /// The address at which the peer proved itself when this route was last dialled: the route's own, or that of a
    /// place behind it.
    var provenAt: TransportAddress?
}
