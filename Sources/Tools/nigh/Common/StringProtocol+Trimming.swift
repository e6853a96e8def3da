extension StringProtocol {
    /// Returns the text without the characters at its beginning and end that `isLeftOut` names.
    func trimming(where isLeftOut: (Character) -> Bool) -> SubSequence {
        let rest = drop(while: isLeftOut)
        return rest.lastIndex { !isLeftOut($0) }.map { rest[...$0] } ?? rest
    }
}
