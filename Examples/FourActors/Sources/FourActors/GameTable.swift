import Distributed
import NighActors

/// A table with two seats and a board. Its program decides what is allowed, and throws a ``TableError`` at all else.
@Resolvable public protocol GameTable: DistributedActor, VersionedContract
where ActorSystem == NighActors.ActorSystem {
    /// Seats a player, and returns its side. The game begins when both seats are taken.
    distributed func sit(_ player: $GamePlayer) throws -> Position.Disc
    /// Drops a disc of the caller into a column, counted from 1, and returns the board after that.
    distributed func drop(into column: Int) throws -> Position
    /// The present position, once the game has begun, and all that follow.
    distributed func positions() -> RemoteStream<Position>
}

extension GameTable {
    /// The version of the contract.
    public static var contractVersion: UInt32 { 1 }
}
