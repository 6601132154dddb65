extension Array {
    /// Returns the elements in order, in portions that cost at most `budget` each, or consist of a
    /// single element that costs more.
    ///
    /// - Parameter cost: Returns the cost of an element, at least 1.
    package func portions(costing budget: Int, each cost: (Element) -> Int) -> [ArraySlice<Element>]
    {
        var portions: [ArraySlice<Element>] = []
        var (start, sum) = (startIndex, 0)
        for index in indices {
            let cost = cost(self[index])
            if index > start, sum + cost > budget {
                portions.append(self[start..<index])
                (start, sum) = (index, 0)
            }
            sum += cost
        }
        if start < endIndex { portions.append(self[start...]) }
        return portions
    }
}
