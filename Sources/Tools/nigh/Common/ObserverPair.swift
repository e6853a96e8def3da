import NighLoop

/// Passes what happens on a session's links to two observers, one after the other.
final class ObserverPair: LinkObserver {
    private let first: any LinkObserver
    private let second: any LinkObserver

    init(_ first: any LinkObserver, _ second: any LinkObserver) {
        self.first = first
        self.second = second
    }

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        first.link(link, event, at: moment)
        second.link(link, event, at: moment)
    }
}
