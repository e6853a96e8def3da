/// How many calls to a transport or a pipe a loop is inside of: nothing may be told meanwhile. One loop's only.
package final class CallDepth {
    @exclusivity(unchecked) var count = 0

    /// Inside of none.
    package init() {}
}
