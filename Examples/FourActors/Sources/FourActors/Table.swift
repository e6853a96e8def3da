import Distributed
import NighActors
import NighCore

/// A table for one game.
package distributed actor Table: GameTable {
    package typealias ActorSystem = NighActors.ActorSystem

    private var seats: [Position.Disc: $GamePlayer] = [:]
    private var position = Position()
    private var watchers: [AsyncStream<Position>.Continuation] = []

    /// Makes a table with an empty board.
    package init(actorSystem: ActorSystem) { self.actorSystem = actorSystem }

    package distributed func sit(_ player: $GamePlayer) throws -> Position.Disc {
        let disc = seats.isEmpty ? Position.Disc.red : .yellow
        guard seats[disc] == nil else { throw TableError.taken }
        seats[disc] = player
        if isBegun { showPosition() }
        return disc
    }

    package distributed func drop(into column: Int) throws -> Position {
        // The table's own program calls, too.
        let caller = ActorSystem.currentPeer?.id ?? actorSystem.peer
        guard position.ending == nil else { throw TableError.gameOver }
        guard isBegun, seats[position.turn]?.id.peer == caller else { throw TableError.notYourTurn }
        try position.drop(position.turn, into: column)
        showPosition()
        return position
    }

    package distributed func positions() -> RemoteStream<Position> { RemoteStream(watch()) }

    /// Tells the players when it is their turn, until the game is over.
    package func run() async {
        for await position in watch() {
            // A player that cannot be reached has left, or is about to.
            guard position.ending != nil else {
                try? await seats[position.turn]?.takeTurn(position)
                continue
            }
            for player in seats.values { try? await player.endGame(position) }
        }
    }

    /// Ends the game if the peer plays here.
    package func leave(_ peer: PeerID) {
        guard position.ending == nil, let seat = seats.first(where: { $0.value.id.peer == peer }) else {
            return
        }
        position.ending = .left(seat.key)
        showPosition()
    }

    private var isBegun: Bool { seats.count == 2 }

    private func watch() -> AsyncStream<Position> {
        let (stream, watcher) = AsyncStream.makeStream(of: Position.self)
        if !isBegun || show(to: watcher) { watchers.append(watcher) }
        return stream
    }

    private func showPosition() { watchers = watchers.filter(show) }

    /// Returns whether the watcher is to see more.
    private func show(to watcher: AsyncStream<Position>.Continuation) -> Bool {
        if case .terminated = watcher.yield(position) { return false }
        guard position.ending != nil else { return true }
        watcher.finish()
        return false
    }
}
