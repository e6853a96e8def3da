enum OpeningMoves {
    static let digits = ""
}
