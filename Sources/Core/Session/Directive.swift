/// Names a call of the program whose outcome will be told by `Directive.finish`.
struct CallToken: Hashable {
    let number: UInt64
}

/// What the session machine wants done: the driver carries these out in order.
enum Directive {
    case dial(DialID, transport: Int, TransportAddress, timeout: Duration)
    case cancelDial(DialID, transport: Int)
    /// Ask the transport which places are behind a route, for a race.
    case findPlaces(race: UInt64, behind: RouteRecord)
    /// Read nothing from the link.
    case hold(Link)
    /// Read from it again, first what has come meanwhile.
    case release(Link)
    /// Write what the link still has, then close its pipe.
    case close(Link)
    case tell(SessionEvent)
    case finish(CallToken, Result<PeerID, NighError>)
    case answerPing(CallToken, Result<Moment.Span, NighError>)
    /// Messages may be sent through this port from now on.
    case openPort(PeerPort)
    /// The port is closed; nothing more comes from this peer either.
    case closePort(PeerPort)
    /// What is known of peers has changed, and is to be kept.
    case saveTrust
    /// All conversations have ended after `close`.
    case allLeft
}
