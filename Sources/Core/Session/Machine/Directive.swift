/// An instruction of the session machine to its driver, which carries out all directives in order.
///
/// A directive is one word, because it is moved several times on its way: longer values are kept in a box of their own
/// (`indirect`).
enum Directive {
    indirect case dial(DialID, transport: Int, TransportAddress, timeout: Duration)
    indirect case cancelDial(DialID, transport: Int)
    /// Asks the transport which places are behind a route, for a race.
    indirect case findPlaces(race: UInt64, behind: RouteRecord)
    /// Stops reading from the link.
    case hold(Link)
    /// Reads from the link again, first the bytes that came meanwhile.
    case release(Link)
    /// Writes the last bytes of the link, then closes its pipe.
    case close(Link)
    /// Asks the transport for the datagram port of the link's pipe.
    case openDatagrams(Link)
    /// Has the port find the place that the other side has offered.
    indirect case findDatagramPlace(Link, DatagramOffer)
    /// Reports the machine's next event.
    case report
    /// Reports a stream that a peer has opened for a purpose other than the program's, which is no event.
    case reportStream(ByteStream)
    indirect case finish(CallToken, Result<PeerID, NighError>)
    indirect case answerPing(CallToken, Result<Moment.Span, NighError>)
    /// Lets messages be sent through this port from now on.
    case openPort(PeerPort)
    /// Removes the port, which is closed. Nothing more comes from this peer either.
    case closePort(PeerPort)
    /// Saves the trust store, which has changed.
    case saveTrust
    /// Advertises whether the session is full, if that has changed: a conversation has begun or ended.
    case conversationCountChanged
    /// Reports that all conversations have ended after `close`.
    case conversationsEnded
}
