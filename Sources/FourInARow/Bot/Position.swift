/// A board as a search sees it: the discs of the side to move, and all discs.
///
/// The colours make no difference here, so a position and the one with the colours exchanged are equal.
struct Position: Hashable, Sendable {
    /// The discs of the side to move.
    var mover: UInt64
    var occupied: UInt64

    init(_ board: Board, toMove disc: Disc) {
        mover = disc == .red ? board.red : board.yellow
        occupied = board.red | board.yellow
    }

    init(mover: UInt64, occupied: UInt64) {
        self.mover = mover
        self.occupied = occupied
    }

    var opponent: UInt64 { mover ^ occupied }
    var count: Int { occupied.nonzeroBitCount }

    /// The cells where a disc would land, one bit for each column with room.
    var landings: UInt64 { Self.landings(occupied) }

    /// Returns the position after the side to move has played this landing.
    func playing(_ landing: UInt64) -> Position {
        Position(mover: opponent, occupied: occupied | landing)
    }

    /// Returns the landing in a column, or 0 if the column is full.
    func landing(in column: Column) -> UInt64 { landings & Self.columnMask(column.index) }

    /// A number below 2^49 that no other position has: the sum leaves a marker above the top disc of each column.
    var key: UInt64 { Self.key(mover, occupied) }

    /// The lesser key of this position and its mirror image, which have the same value.
    var symmetricKey: UInt64 { Self.symmetricKey(mover, occupied) }

    static func columnMask(_ index: Int) -> UInt64 {
        (1 << UInt64(Board.rows) - 1) << UInt64(index * Lines.columnStride)
    }

    @inline(__always) static func landings(_ occupied: UInt64) -> UInt64 {
        (occupied &+ bottom) & cells
    }

    @inline(__always) static func key(_ mover: UInt64, _ occupied: UInt64) -> UInt64 { mover &+ occupied }

    @inline(__always) static func symmetricKey(_ mover: UInt64, _ occupied: UInt64) -> UInt64 {
        let key = key(mover, occupied)
        let mirrored = mirrored(key)
        return key < mirrored ? key : mirrored
    }

    /// Returns the key in another order: neighbouring keys become far apart, and each key still has a number of its own
    /// below 2^49.
    ///
    /// Tables use the upper bits as the index and store the rest, so that the two together are the whole key.
    @inline(__always) static func spread(_ key: UInt64) -> UInt64 {
        (key &* 0x0001_3C6E_F372_FE95) & (1 &<< 49 &- 1)
    }

    /// Returns these bits with the order of the columns reversed.
    @inline(__always) static func mirrored(_ bits: UInt64) -> UInt64 {
        let column: UInt64 = 0x7F
        let outer = (bits & column) &<< 42 | (bits &>> 42) & column
        let middle = (bits & column &<< 7) &<< 28 | (bits &>> 28) & column &<< 7
        let inner = (bits & column &<< 14) &<< 14 | (bits &>> 14) & column &<< 14
        return outer | middle | inner | bits & column &<< 21
    }

    /// Returns the empty cells that would complete a line of four with these discs, whether or not a disc can land
    /// there yet.
    @inline(__always) static func winningCells(_ discs: UInt64, _ occupied: UInt64) -> UInt64 {
        var found = (discs &<< 1) & (discs &<< 2) & (discs &<< 3)
        found |= along(discs, 6) | along(discs, 7) | along(discs, 8)
        return found & cells & ~occupied
    }

    /// Returns these cells for the lines of one direction: with three discs on one side, or two on one side and one on
    /// the other.
    @inline(__always) private static func along(_ discs: UInt64, _ stride: UInt64) -> UInt64 {
        let leftPair = (discs &<< stride) & (discs &<< (2 &* stride))
        let rightPair = (discs &>> stride) & (discs &>> (2 &* stride))
        return leftPair & ((discs &<< (3 &* stride)) | (discs &>> stride))
            | rightPair & ((discs &>> (3 &* stride)) | (discs &<< stride))
    }

    @inline(__always) static func hasLine(_ discs: UInt64) -> Bool {
        quartet(discs, 1) | quartet(discs, 6) | quartet(discs, 7) | quartet(discs, 8) != 0
    }

    @inline(__always) private static func quartet(_ discs: UInt64, _ stride: UInt64) -> UInt64 {
        let pairs = discs & (discs &>> stride)
        return pairs & (pairs &>> (2 &* stride))
    }

    // The values of `Lines` as literals: each access to a stored constant checks whether it is initialised, a million
    // times a second.
    @inline(__always) static var bottom: UInt64 { 0x0000_0408_1020_4081 }
    @inline(__always) static var cells: UInt64 { 0x0000_FDFB_F7EF_DFBF }
    /// The second, fourth and sixth row from the bottom.
    @inline(__always) static var evenRows: UInt64 { 0x0000_A952_A54A_952A }
    /// The first, third and fifth row from the bottom.
    @inline(__always) static var oddRows: UInt64 { 0x0000_54A9_52A5_4A95 }
}
